import { createRequire } from 'node:module';
import { maxTokenNumber, tokenEncoding } from '../contract/embeddings.ts';

/**
 * Turns numbers of `cl100k_base` into the text that they stand for. Our own, as the decoder of the package that has the
 * vocabulary keeps cut characters for its next call, which may be another caller's, and drops a byte order mark.
 */

interface Vocabulary {
  /** The bytes of all tokens, one after the other. */
  readonly bytes: Uint8Array;
  /** Where those of each token begin, and those of the last end. */
  readonly starts: Uint32Array;
  /** What the text of each takes in a JSON body, at the most. */
  readonly jsonBytes: Uint16Array;
}

let loaded: Vocabulary | null = null;

/** Loads the vocabulary (50 ms and 20 MB) unless it is there. A server calls it while it starts. */
export function loadTokenDecoder(): void {
  loaded ??= readVocabulary();
}

/** Whether a value is the number of a token that stands for text. */
export function isTokenNumber(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTokenNumber;
}

/** What the text of these tokens takes in a JSON body, at the most: known before there is such a text. */
export function measureTokens(tokens: readonly number[]): number {
  const { jsonBytes } = (loaded ??= readVocabulary());
  let sum = 0;
  for (const token of tokens) sum += jsonBytes[token]!;
  return sum;
}

/**
 * The text of these tokens, in time that grows with its length. A character that is not whole in them, as one that was
 * cut where a long text was split, becomes U+FFFD.
 */
export function decodeTokens(tokens: readonly number[]): string {
  const { bytes, starts } = (loaded ??= readVocabulary());
  let length = 0;
  for (const token of tokens) length += starts[token + 1]! - starts[token]!;
  const text = Buffer.allocUnsafe(length);
  let at = 0;
  for (const token of tokens) {
    const end = starts[token + 1]!;
    // Most have a few bytes, for which a call to copy them takes longer.
    for (let from = starts[token]!; from < end; from++) text[at++] = bytes[from]!;
  }
  return text.toString('utf8');
}

/** A token is a text, or the bytes of a part of a character. */
type Ranks = readonly (string | readonly number[])[];

/** Any byte that is no part of a whole character may become U+FFFD. */
const replacementBytes = 3;

function readVocabulary(): Vocabulary {
  const module = createRequire(import.meta.url)(`gpt-tokenizer/bpeRanks/${tokenEncoding}`) as {
    default: Ranks;
  };
  const ranks = module.default;
  const starts = new Uint32Array(ranks.length + 1);
  const jsonBytes = new Uint16Array(ranks.length);
  const parts = ranks.map((token) => Buffer.from(token as string));
  for (const [i, part] of parts.entries()) {
    const token = ranks[i]!;
    starts[i + 1] = starts[i]! + part.length;
    jsonBytes[i] =
      typeof token === 'string'
        ? Buffer.byteLength(JSON.stringify(token)) - 2
        : part.length * replacementBytes;
  }
  return { bytes: Buffer.concat(parts), starts, jsonBytes };
}
