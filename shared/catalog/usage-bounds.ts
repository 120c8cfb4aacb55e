// decision 0026
import type { CatalogRoute } from './catalog-schema.ts';

/**
 * Upper bounds of the usage that a vendor can report for a request. A report above them is a vendor error and is
 * treated as missing.
 */

/**
 * The catalog may give the context in tokens of a different tokenizer. The vendor's may count more tokens for the same
 * text.
 */
const promptSlack = 1.25;
/**
 * Assumed generation speed of one response, in tokens per second, for tokens that were not received. An upper bound:
 * several times the speed of most vendors, and seldom exceeded by the fastest hosts of large models.
 */
export const maxTokensPerSecond = 1_000;

/** Tokens that vendors add to a prompt: their own instructions and the tool formats. Grok 4 counts 680. */
const addedPromptTokens = 4_096;
/** No vocabulary has more tokens than bytes, but some servers write non-ASCII characters in schemas as `\u0436`. */
const tokensPerByte = 1.5;
/** The highest known count: gpt-4o-mini, for the largest image. */
const maxTokensPerImage = 48_000;
/**
 * Audio may be compressed to 4 kbit per second, and a vendor may pass files to its model in a longer form than ours.
 */
const audioSlack = 8;
const fileSlack = 2;
/**
 * Vendors exceed a bound by the tokens of their template, and some by the remainder of a batch that was being
 * generated.
 */
const completionSlack = 1.1;
const templateTokens = 64;

/** Gemini counts 1120 to 2000 tokens for an image, depending on its size; most of its images are 1290. */
export const tokensPerOutputImage = 1_290;
/** No chat model generates more images than this in one response. */
const maxOutputImages = 10;

export interface UsageBounds {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export interface ChatUsageBounds extends UsageBounds {
  /** Allowance for a completion of a vendor that ignored the bound. */
  readonly overrunTokens: number;
}

const boundNames = ['max_tokens', 'max_completion_tokens'];

/** Whether we send the vendor a token bound that covers everything generated. */
export function isBounded({ drops, maxTokens }: CatalogRoute): boolean {
  return maxTokens === 'all' && !boundNames.every((name) => drops.has(name));
}

/** The usage that a request's own parameters allow: tokens per call, and the number of calls and choices. */
export interface UsageTerms {
  readonly context: number;
  /** The maximum tokens of one call's prompt in any vocabulary; null if the vendor may add any number to it. */
  readonly mostPromptTokens: number | null;
  /** How many times the vendor reads and bills the prompt. */
  readonly calls: number;
  /** Tokens that searches may add to the prompt. */
  readonly searchTokens: number;
  readonly choices: number;
  /** The completion bound sent to the vendor; null if none was sent. */
  readonly maxTokens: number | null;
  /** Tokens of a prediction. Rejected ones count as completion tokens. */
  readonly predictedTokens: number;
  readonly mayGenerateImages: boolean;
}

export function findUsageBounds(terms: UsageTerms): ChatUsageBounds {
  const { context, calls, searchTokens, choices, maxTokens, predictedTokens, mayGenerateImages } = terms;
  const imageTokens = mayGenerateImages ? maxOutputImages * tokensPerOutputImage : 0;
  const bound = (perChoice: number): number =>
    ((perChoice + imageTokens) * choices + predictedTokens) * completionSlack + templateTokens * choices;
  const byContext = (context * calls * choices + searchTokens) * promptSlack + templateTokens;
  return {
    promptTokens: Math.min(byContext, (terms.mostPromptTokens ?? Infinity) * choices),
    completionTokens: bound(Math.min(maxTokens ?? context, context)),
    overrunTokens: bound(context),
  };
}

/**
 * Some vendors bound the output but not the reasoning, and some servers ignore the bound under every parameter name.
 * Reported usage above the bound is accepted up to the tokens received plus those that can have been generated without
 * being sent.
 */
export function allowOverrun(
  { promptTokens, completionTokens, overrunTokens }: ChatUsageBounds,
  output: { readonly tokens: number; readonly unseenTokens: number; readonly choices: number },
): UsageBounds {
  const generated = output.tokens * promptSlack + output.unseenTokens + templateTokens * output.choices;
  return {
    promptTokens,
    completionTokens: Math.max(completionTokens, Math.min(overrunTokens, generated)),
  };
}

/** The parts of a prompt that may be more tokens for a vendor than for us. */
export interface PromptParts {
  /** The whole prompt, according to our own estimate. */
  readonly tokens: number;
  readonly textBytes: number;
  readonly fileTextBytes: number;
  /** Images, and pages of files. */
  readonly pictures: number;
  /** The model's context if there are files that cannot be read here, and 0 otherwise. */
  readonly fileTokens: number;
  readonly audioTokens: number;
}

/** The maximum number of tokens of a prompt in any vendor's vocabulary. */
export function findMaxPromptTokens(prompt: PromptParts): number {
  const bytes = prompt.textBytes + prompt.fileTextBytes * fileSlack;
  const media =
    prompt.pictures * maxTokensPerImage + prompt.fileTokens * fileSlack + prompt.audioTokens * audioSlack;
  // The catalog may specify more tokens per image.
  return addedPromptTokens + Math.max(2 * prompt.tokens, Math.ceil(bytes * tokensPerByte + media));
}

/** OpenAI counts this many tokens for each preview of a streamed image. */
export const tokensPerPreview = 100;

/** The usage that an image request's own parameters allow. */
export interface ImageUsageTerms {
  readonly context: number;
  readonly maxOutputTokens: number;
  readonly n: number;
  /** Input images, including a mask. */
  readonly inputs: number;
  /** Number of previews requested. */
  readonly previews: number;
}

/** Bounds for `n` images of one prompt. Some vendors read and bill the prompt once per image. */
export function findImageBounds({
  context,
  maxOutputTokens,
  n,
  inputs,
  previews,
}: ImageUsageTerms): UsageBounds {
  const promptTokens = context + inputs * maxTokensPerImage;
  return {
    promptTokens: promptTokens * n * promptSlack + templateTokens,
    completionTokens:
      (maxOutputTokens + previews * tokensPerPreview) * n * completionSlack + templateTokens * n,
  };
}

/** Bounds for embeddings: each input has at most the model's context. */
export function findEmbeddingBounds(context: number, inputs: number): UsageBounds {
  return { promptTokens: (context * promptSlack + templateTokens) * inputs, completionTokens: 0 };
}
