import type { CatalogRoute } from './catalog-schema.ts';

/**
 * Upper bounds of what a vendor can have counted for a request. A report above them is a mistake of the vendor and is
 * treated as if there were no report.
 */

/** A vendor's tokenizer may count a text as longer than in the unit of the catalog's context. */
const promptSlack = 1.25;
/**
 * Assumed generation speed of one response, in tokens per second, when the tokens were not seen. An upper bound:
 * several times the speed of most vendors, and seldom exceeded by the fastest hosts of large models.
 */
export const mostTokensPerSecond = 1_000;

/** What vendors add to a prompt: their own instructions, and the tool formats. Grok 4 counts 680. */
const addedPromptTokens = 4_096;
/** No vocabulary has more tokens than bytes, but some servers write non-ASCII characters in schemas as `\u0436`. */
const tokensPerByte = 1.5;
/** The highest known count: gpt-4o-mini, for the largest image. */
const mostTokensPerPicture = 48_000;
/** Audio may be as thin as 4 kbit per second, and a model may be given files in a form that is longer than ours. */
const soundSlack = 8;
const fileSlack = 2;
/** Vendors exceed a bound by the tokens of their template, and some by the rest of a batch that was being generated. */
const completionSlack = 1.1;
const templateTokens = 64;

/** Gemini counts 1120 to 2000 tokens for an image, depending on its size; most of its images are 1290. */
export const tokensPerOutputImage = 1_290;
/** No chat model generates more images than this in one response. */
const mostOutputImages = 10;

export interface UsageBounds {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export interface ChatUsageBounds extends UsageBounds {
  /** For a completion whose vendor did not respect the bound that it was sent. */
  readonly overrunTokens: number;
}

const boundNames = ['max_tokens', 'max_completion_tokens'];

/** Whether the vendor is sent a token bound that covers everything generated. */
export function isBounded({ drops, maxTokens }: CatalogRoute): boolean {
  return maxTokens === 'all' && !boundNames.every((name) => drops.has(name));
}

/** What a request may use by its own terms: tokens per call, and how many calls and choices there are. */
export interface UsageTerms {
  readonly context: number;
  /** The most that one call's prompt can count in any vocabulary; null if the vendor may add any amount to it. */
  readonly mostPromptTokens: number | null;
  /** How often the vendor reads and counts the prompt. */
  readonly calls: number;
  /** Tokens that searches may add to the prompt. */
  readonly searchTokens: number;
  readonly choices: number;
  /** The completion bound sent to the vendor; null if none was sent. */
  readonly maxTokens: number | null;
  /** Tokens of a prediction. Rejected ones count as completion. */
  readonly predictedTokens: number;
  readonly mayDraw: boolean;
}

export function findUsageBounds(terms: UsageTerms): ChatUsageBounds {
  const { context, calls, searchTokens, choices, maxTokens, predictedTokens, mayDraw } = terms;
  const drawn = mayDraw ? mostOutputImages * tokensPerOutputImage : 0;
  const bound = (perChoice: number): number =>
    ((perChoice + drawn) * choices + predictedTokens) * completionSlack + templateTokens * choices;
  const byContext = (context * calls * choices + searchTokens) * promptSlack + templateTokens;
  return {
    promptTokens: Math.min(byContext, (terms.mostPromptTokens ?? Infinity) * choices),
    completionTokens: bound(Math.min(maxTokens ?? context, context)),
    overrunTokens: bound(context),
  };
}

/**
 * Some vendors bound the output but not the reasoning, and some servers ignore every name of the bound. A report above
 * the bound is accepted as far as it agrees with the output that was seen, and with what can have been generated in the
 * time.
 */
export function allowOverrun(
  { promptTokens, completionTokens, overrunTokens }: ChatUsageBounds,
  seen: { readonly tokens: number; readonly unseenTokens: number; readonly choices: number },
): UsageBounds {
  const generated = seen.tokens * promptSlack + seen.unseenTokens + templateTokens * seen.choices;
  return {
    promptTokens,
    completionTokens: Math.max(completionTokens, Math.min(overrunTokens, generated)),
  };
}

/** The parts of a prompt that a vendor may count higher than we do. */
export interface PromptMakeup {
  /** All of it, by our own count. */
  readonly tokens: number;
  readonly textBytes: number;
  readonly fileTextBytes: number;
  /** Images, pages, and files that are not parsed here. */
  readonly pictures: number;
  /** Tokens of the rest, by our own count. */
  readonly fileTokens: number;
  readonly audioTokens: number;
}

/** The most that a prompt can count in any vendor's vocabulary. */
export function findMostPromptTokens(prompt: PromptMakeup): number {
  const bytes = prompt.textBytes + prompt.fileTextBytes * fileSlack;
  const media =
    prompt.pictures * mostTokensPerPicture + prompt.fileTokens * fileSlack + prompt.audioTokens * soundSlack;
  // The catalog may define more expensive images.
  return addedPromptTokens + Math.max(2 * prompt.tokens, Math.ceil(bytes * tokensPerByte + media));
}

/** OpenAI counts this many tokens for each preview of a streamed image. */
export const tokensPerPreview = 100;

/** What an image request may use by its own terms. */
export interface ImageUsageTerms {
  readonly context: number;
  readonly maxOutputTokens: number;
  readonly n: number;
  /** Input images, including a mask. */
  readonly inputs: number;
  /** Number of previews requested. */
  readonly previews: number;
}

/** Bounds for `n` images of one prompt. Some vendors read and count the prompt once per image. */
export function findImageBounds({
  context,
  maxOutputTokens,
  n,
  inputs,
  previews,
}: ImageUsageTerms): UsageBounds {
  const promptTokens = context + inputs * mostTokensPerPicture;
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
