// decision 0050
import { createRequire } from 'node:module';
import { maxTokenId, tokenEncoding } from '../../contract/embeddings.ts';

/**
 * Decodes token IDs of `cl100k_base` to text. The package with the vocabulary has a decoder, but it keeps
 * incomplete characters for its next call, which may be another caller's, and drops a byte order mark.
 */

interface Vocabulary {
  /** The bytes of all tokens, concatenated. */
  readonly bytes: Uint8Array;
  /** Start offset of each token, plus the end of the last one. */
  readonly starts: Uint32Array;
  /** Upper bound of each token's size in a JSON body. */
  readonly jsonBytes: Uint16Array;
}

let loaded: Vocabulary | null = null;

/** Loads the vocabulary (50 ms and 20 MB) if necessary. Servers call it at startup. */
export function loadTokenDecoder(): void {
  loaded ??= readVocabulary();
}

/** Whether a value is the ID of a token that stands for text. */
export function isTokenId(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxTokenId;
}

/** Upper bound of the size of these tokens' text in a JSON body, known before the text is decoded. */
export function measureTokens(tokens: readonly number[]): number {
  const { jsonBytes } = (loaded ??= readVocabulary());
  let sum = 0;
  for (const token of tokens) sum += jsonBytes[token]!;
  return sum;
}

/**
 * Decodes tokens to text in linear time. An incomplete character (for example where a long text was split) becomes
 * U+FFFD.
 */
export function decodeTokens(tokens: readonly number[]): string {
  const { bytes, starts } = (loaded ??= readVocabulary());
  let length = 0;
  for (const token of tokens) length += starts[token + 1]! - starts[token]!;
  const text = Buffer.allocUnsafe(length);
  let at = 0;
  for (const token of tokens) {
    const end = starts[token + 1]!;
    // Most tokens have a few bytes, for which a copy call would be slower.
    for (let from = starts[token]!; from < end; from++) text[at++] = bytes[from]!;
  }
  return text.toString('utf8');
}

/** A token is text, or the bytes of part of a character. */
type Ranks = readonly (string | readonly number[])[];

/** Bytes of U+FFFD in UTF-8. Any byte that is not part of a whole character may become one. */
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
