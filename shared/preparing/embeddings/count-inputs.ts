import type { CatalogModel } from '../../catalog/catalog-schema.ts';
import { maxTokensPerEmbeddingInput } from '../../contract/embeddings.ts';
import { AppError } from '../../contract/errors.ts';
import { joinWords } from '../../contract/describe-issue.ts';
import { maxIssues } from '../../contract/validation.ts';
import { estimateInOtherVocabulariesAsync } from '../tokens/other-vocabularies.ts';
import { countTokensAsync, type CountingTurn } from '../../catalog/count-tokens.ts';

export interface EmbeddingInputs {
  readonly texts: readonly string[];
  /** Number of tokens of each input, if the inputs were sent as token IDs; null if texts were sent. */
  readonly sentTokens: readonly number[] | null;
  /** Whether a single input was sent instead of a list. */
  readonly isSingle: boolean;
}

export interface CountingOptions {
  /** Maximum tokens of an input. */
  readonly limit: number;
  /** The event-loop turns in which the inputs of this request are tokenized. */
  readonly countingTurn: CountingTurn;
}

/** Returns the maximum tokens of an input, without those that the vendor adds. */
export function findInputLimit({ context, specialTokens }: CatalogModel): number {
  return Math.max(1, Math.min(maxTokensPerEmbeddingInput, context - (specialTokens ?? 0)));
}

/** Tokens of the inputs, one number for each. */
export interface InputTokens {
  /** According to our own tokenizer. */
  readonly counted: readonly number[];
  /** The most that the vendor may count for all inputs together, in a vocabulary that the catalog does not name. */
  readonly mostTokens: number;
}

/**
 * Counts the tokens of each input, including those that the vendor is known to add. An input sent as token IDs is
 * forwarded as text, which the vendor tokenizes again. Its count is the higher of the number of token IDs sent and the
 * number of tokens that the model's tokenizer finds in the text.
 * @throws AppError `content_too_long` if an input exceeds the limit
 */
export async function countInputs(
  { texts, sentTokens, isSingle }: EmbeddingInputs,
  { tokenizer, hasTokenizer, specialTokens, context }: CatalogModel,
  { limit, countingTurn }: CountingOptions,
): Promise<InputTokens> {
  const counted: number[] = [];
  let mostTokens = 0;
  const tooLong: number[] = [];
  for (const [i, text] of texts.entries()) {
    const tokens = await countTokensAsync(text, { limit, turn: countingTurn, encoding: tokenizer });
    if (tokens === null) {
      tooLong.push(i);
      continue;
    }
    // Whitespace alone can have zero tokens, but vendors bill at least one token per input.
    const count = Math.max(1, tokens, sentTokens?.[i] ?? 0) + (specialTokens ?? 0);
    counted.push(count);
    const inOthers = hasTokenizer ? 0 : await estimateInOtherVocabulariesAsync(text, 'encoder', countingTurn);
    mostTokens += Math.max(count, Math.min(Math.ceil(inOthers), context));
  }
  if (tooLong.length > 0) throw inputsTooLong(tooLong, isSingle, limit);
  return { counted, mostTokens };
}

/** Maximum number of inputs that the error message lists. */
const maxListed = 5;

/** @param tooLong indexes of the inputs */
export function inputsTooLong(tooLong: readonly number[], isSingle: boolean, limit: number): AppError {
  const locations = tooLong.map((i) => (isSingle ? ['input'] : ['input', i]));
  const msg = `is longer than ${limit} tokens`;
  const [first, ...others] = locations.slice(0, maxListed).map((location) => location.join('.'));
  if (locations.length > maxListed) others.push(`${locations.length - maxListed} more`);
  const othersSuffix =
    others.length === 0 ? '' : `; so ${others.length === 1 ? 'is' : 'are'} ${joinWords(others, 'and')}`;
  return new AppError('content_too_long', {
    message: `${first}: ${msg}${othersSuffix}`,
    issues: locations
      .slice(0, maxIssues)
      .map((location) => ({ loc: ['body', ...location], msg, type: 'value_error' })),
  });
}
