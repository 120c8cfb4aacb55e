/**
 * The most that a vendor can have counted for a request. A report beyond it is a mistake of the vendor's, and is treated
 * as if it had not been made.
 */

/** A vendor's tokenizer may count a text longer than the unit in which the catalog gives the context. */
const promptSlack = 1.25;
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

/** What a request may use by its own terms: tokens of one call, and how many calls or choices there are. */
export interface UsageTerms {
  readonly context: number;
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

export function findUsageBounds(terms: UsageTerms): UsageBounds {
  const { context, calls, searchTokens, choices, maxTokens, predictedTokens, mayDraw } = terms;
  const perChoice =
    Math.min(maxTokens ?? context, context) + (mayDraw ? mostOutputImages * tokensPerOutputImage : 0);
  return {
    promptTokens: (context * calls * choices + searchTokens) * promptSlack + templateTokens,
    completionTokens: (perChoice * choices + predictedTokens) * completionSlack + templateTokens * choices,
  };
}

/** The bounds of `n` images of one prompt, which some vendors read, and count, for each of them. */
export function findImageBounds(context: number, maxOutputTokens: number, n: number): UsageBounds {
  return {
    promptTokens: context * n * promptSlack + templateTokens,
    completionTokens: (maxOutputTokens * completionSlack + templateTokens) * n,
  };
}

/** The bounds of embeddings: each input has at most the model's context. */
export function findEmbeddingBounds(context: number, inputs: number): UsageBounds {
  return { promptTokens: (context * promptSlack + templateTokens) * inputs, completionTokens: 0 };
}
