// decision 0050
import {
  createEmbedding,
  maxTokenId,
  tokenEncoding,
  type EmbeddingInput,
} from '../../contract/embeddings.ts';
import type { ValidationIssue } from '../../contract/errors.ts';
import { tooLarge } from '../../contract/too-large.ts';
import { maxIssues, toValidationError } from '../../contract/validation.ts';
import type { CountingTurn } from '../../catalog/count-tokens.ts';
import { decodeTokens, isTokenId, measureTokens } from '../tokens/decode-tokens.ts';
import { inputsTooLong, type CountingOptions, type EmbeddingInputs } from './count-inputs.ts';

export interface ReadingOptions extends CountingOptions {
  /**
   * Reserves memory for the texts before token IDs are decoded to them.
   * @param textBytes their size in a JSON body
   */
  readonly holdText?: ((textBytes: number) => void) | undefined;
}

/**
 * Reads the texts of an embedding request. Checks arrays of token IDs in the request's event-loop turns, reserves
 * memory for their texts, and decodes them. The decoded texts are then handled like texts in the request.
 * @throws AppError `content_too_long`, `validation_failed`, `payload_too_large`; the errors of `holdText`
 */
export async function readInputs(
  input: EmbeddingInput,
  { limit, countingTurn, holdText }: ReadingOptions,
): Promise<EmbeddingInputs> {
  if (typeof input === 'string') return { texts: [input], sentTokens: null, isSingle: true };
  if (isListOf(input, 'string')) return { texts: input as string[], sentTokens: null, isSingle: false };
  const isSingle = isListOf(input, 'number');
  const arrays = (isSingle ? [input] : input) as readonly (readonly unknown[])[];
  const tooLong = [...arrays.keys()].filter((i) => arrays[i]!.length > limit);
  if (tooLong.length > 0) throw inputsTooLong(tooLong, isSingle, limit);
  const textBytes = await checkTokens(arrays, isSingle, countingTurn);
  const { bodyLimitBytes } = createEmbedding;
  if (textBytes > bodyLimitBytes) throw tooLarge(bodyLimitBytes, 'The text decoded from the token IDs');
  holdText?.(textBytes);
  const texts: string[] = [];
  for (const tokens of arrays as readonly (readonly number[])[]) {
    await waitBefore(tokens, countingTurn);
    texts.push(decodeTokens(tokens));
  }
  return { texts, sentTokens: arrays.map((tokens) => tokens.length), isSingle };
}

/** Checks only the first item, because the validator has checked that all have the same type. */
const isListOf = (list: readonly unknown[], type: 'string' | 'number'): boolean => typeof list[0] === type;

/** Waits for an event-loop turn if this array requires one. Each array fits into one turn. */
async function waitBefore({ length }: readonly unknown[], turn: CountingTurn): Promise<void> {
  if (turn.mustWaitFor(length) || turn.spend(length)) await turn.next();
}

/**
 * Checks the token IDs. Returns the maximum bytes that their texts would take in a JSON body.
 * @throws AppError `validation_failed` with the invalid values and their locations
 */
async function checkTokens(
  arrays: readonly (readonly unknown[])[],
  isSingle: boolean,
  turn: CountingTurn,
): Promise<number> {
  const issues: ValidationIssue[] = [];
  let invalid = 0;
  let textBytes = 0;
  for (const [i, array] of arrays.entries()) {
    await waitBefore(array, turn);
    const invalidBefore = invalid;
    for (let j = 0; j < array.length; j++) {
      if (isTokenId(array[j])) continue;
      invalid += 1;
      if (issues.length < maxIssues) issues.push(describeIssue(isSingle ? [j] : [i, j], array[j]));
    }
    if (invalid === invalidBefore) textBytes += measureTokens(array as readonly number[]);
  }
  if (invalid > 0) throw toValidationError(issues, invalid);
  return textBytes;
}

/** IDs of the special tokens for the end of text, fill-in-the-middle, and the end of the prompt. */
const specialTokens: ReadonlySet<number> = new Set([100_257, 100_258, 100_259, 100_260, 100_276]);

function describeIssue(location: readonly number[], value: unknown): ValidationIssue {
  const loc = ['body', 'input', ...location];
  const known = `token ID of ${tokenEncoding} (0 to ${maxTokenId})`;
  if (!Number.isInteger(value))
    return { loc, msg: `must be a ${known}, not ${describeValue(value)}`, type: 'type' };
  const special = specialTokens.has(value as number) ? ': it is a special token, which has no text' : '';
  return { loc, msg: `${String(value)} is not a ${known}${special}`, type: 'value_error' };
}

function describeValue(value: unknown): string {
  if (typeof value === 'number' || value === null) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
