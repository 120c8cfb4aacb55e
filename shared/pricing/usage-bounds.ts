import type { CatalogRoute } from '../catalog/catalog-schema.ts';

/**
 * The most that a vendor can have counted for a request. A report beyond it is a mistake of the vendor's, and is treated
 * as if it had not been made.
 */

/** A vendor's tokenizer may count a text longer than the unit in which the catalog gives the context. */
const promptSlack = 1.25;
/**
 * Tokens a second that one answer is taken to be generated with where nobody saw them: several times what most vendors
 * reach, since this is an upper count, and what the fastest hosts of large models seldom exceed.
 */
export const mostTokensPerSecond = 1_000;

/** What vendors put before a prompt themselves: instructions of theirs, and the forms of tools. Grok 4 counts 680. */
const addedPromptTokens = 4_096;
/** No vocabulary has more tokens than bytes; but some servers write what is not ASCII in schemas as `\u0436`. */
const tokensPerByte = 1.5;
/** The most that is known of: gpt-4o-mini, of the largest picture. */
const mostTokensPerPicture = 48_000;
/** Sound may be as thin as 4 kbit a second, and files may be given to a model in a form that is longer than ours. */
const soundSlack = 8;
const fileSlack = 2;
/** Vendors overrun a bound by the tokens of their template, and some by the rest of a batch they were generating. */
const completionSlack = 1.1;
const templateTokens = 64;

/** Gemini counts 1120 to 2000 tokens for an image, by its size; 1290 is what most of its images are. */
export const tokensPerOutputImage = 1_290;
/** No chat model draws more images than this in one answer. */
const mostOutputImages = 10;

export interface UsageBounds {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

export interface ChatUsageBounds extends UsageBounds {
  /** Of a completion whose vendor did not keep to the bound that it was sent. */
  readonly overrunTokens: number;
}

const boundNames = ['max_tokens', 'max_completion_tokens'];

/** Whether the vendor is told a bound on tokens, and it holds for all that is generated. */
export function isBounded({ drops, maxTokens }: CatalogRoute): boolean {
  return maxTokens === 'all' && !boundNames.every((name) => drops.has(name));
}

/** What a request may use by its own terms: tokens of one call, and how many calls or choices there are. */
export interface UsageTerms {
  readonly context: number;
  /** The most that one call's prompt can count in any vocabulary; null where the vendor may add to it at will. */
  readonly mostPromptTokens: number | null;
  /** How often the vendor reads, and counts, the prompt. */
  readonly calls: number;
  /** Tokens that searches may add to the prompt. */
  readonly searchTokens: number;
  readonly choices: number;
  /** The bound on an answer that the vendor was sent; null where it was sent none. */
  readonly maxTokens: number | null;
  /** Tokens of a prediction, which are counted as completion where they are not borne out. */
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
 * Some vendors bound the answer and not the reasoning, and some servers know none of the names of the bound. A report
 * beyond it is believed as far as it agrees with what was seen, and with what the time allows to have been generated.
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

/** What a prompt consists of, of which a vendor may count more than we do. */
export interface PromptMakeup {
  /** All of it, by our own count. */
  readonly tokens: number;
  readonly textBytes: number;
  readonly fileTextBytes: number;
  /** Pictures, pages, and files that are not read here. */
  readonly pictures: number;
  /** What the rest counts, by our own count. */
  readonly fileTokens: number;
  readonly audioTokens: number;
}

/** The most that a prompt can count, whatever its vendor's vocabulary. */
export function findMostPromptTokens(prompt: PromptMakeup): number {
  const bytes = prompt.textBytes + prompt.fileTextBytes * fileSlack;
  const media =
    prompt.pictures * mostTokensPerPicture + prompt.fileTokens * fileSlack + prompt.audioTokens * soundSlack;
  // A catalog may know of dearer pictures.
  return addedPromptTokens + Math.max(2 * prompt.tokens, Math.ceil(bytes * tokensPerByte + media));
}

/** OpenAI counts so many tokens for each preview of a streamed image. */
export const tokensPerPreview = 100;

/** What an image request may use by its own terms. */
export interface ImageUsageTerms {
  readonly context: number;
  readonly maxOutputTokens: number;
  readonly n: number;
  /** Images that are given to the model, a mask among them. */
  readonly inputs: number;
  /** Previews that were asked for. */
  readonly previews: number;
}

/** The bounds of `n` images of one prompt, which some vendors read, and count, for each of them. */
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

/** The bounds of embeddings: each input has at most the model's context. */
export function findEmbeddingBounds(context: number, inputs: number): UsageBounds {
  return { promptTokens: (context * promptSlack + templateTokens) * inputs, completionTokens: 0 };
}
