import { createRequire } from 'node:module';
import type * as o200kBase from 'gpt-tokenizer/encoding/o200k_base';
import { nextWorkTurn } from '../fairness/work-turns.ts';
import { findBlockEnd } from './text-blocks.ts';

/**
 * Counts tokens with OpenAI's public encodings. The counts are used to estimate prompts, and to bill callers when a
 * vendor reports no usage.
 */

/**
 * The longest entry of the vocabulary (a run of spaces). Text longer than `limit` times this has more than `limit`
 * tokens.
 */
const maxTokenChars = 128;
const yieldEveryChars = 32 * 1024;
/** How much a request may tokenize as soon as it arrives. If it has more, it waits for an event-loop turn first. */
const maxImmediateChars = 8 * 1024;
/**
 * Some texts (random characters) take 100 times as long as prose of the same length, so a limit on length alone does
 * not limit the time of a turn.
 */
const yieldEveryMs = 4;
/**
 * Merged words are cached between calls, which makes prose ten times as fast. The cache is cleared after this many
 * characters.
 */
const cachedWords = 20_000;
const clearCacheEveryChars = 1_000_000;
/** Special tokens such as <|endoftext|> in a prompt are tokenized as ordinary text. */
const asText = { disallowedSpecial: new Set<string>() };

type Encoding = typeof o200kBase;

/** Newest first: GPT-4o and later; GPT-4 and the embedding models; Codex; GPT-3. */
export const encodingNames = ['o200k_base', 'cl100k_base', 'p50k_base', 'r50k_base'] as const;
export type EncodingName = (typeof encodingNames)[number];

/** For models whose catalog entry has no `tokenizer`. */
export const defaultEncoding: EncodingName = 'o200k_base';

interface LoadedEncoding {
  readonly encoding: Encoding;
  charsSinceClear: number;
}

const loaded = new Map<EncodingName, LoadedEncoding>();

/**
 * Loads the vocabulary (a third of a second and 70 MB) if necessary. Counting also loads it, but a server calls this at
 * startup so that its first request does not wait.
 */
export function loadTokenizer(): void {
  getEncoding(defaultEncoding);
}

/** Counts tokens synchronously. Exact, except for unbroken runs of over 2 000 bytes. */
export function countTokens(text: string, name: EncodingName = defaultEncoding): number {
  let count = 0;
  for (let start = 0; start < text.length;) {
    const end = findBlockEnd(text, start);
    count += countBlock(text, start, end, name);
    start = end;
  }
  return count;
}

/**
 * How much one request may tokenize before it yields to other work of the process: 32 KB or 4 ms, over all of its texts
 * together. A short text is tokenized immediately. A long one also waits before its first turn; otherwise a thousand
 * simultaneous requests would block the process for as long as all of their first turns take.
 */
export class CountingTurn {
  /** The account whose text is tokenized. */
  readonly accountId: string;
  readonly #check: () => void | Promise<void>;
  #isFirst = true;
  #chars = 0;
  #startedMs = performance.now();

  /** @param check called after waiting for each turn; throws if the result is no longer needed */
  constructor(check: () => void | Promise<void> = () => undefined, accountId = '') {
    this.#check = check;
    this.accountId = accountId;
  }

  /** Whether a text of this length must wait before any of it is tokenized. */
  mustWaitFor(chars: number): boolean {
    return this.#isFirst && this.#chars + chars > maxImmediateChars;
  }

  /** Records that this many characters were tokenized. @returns whether the turn is used up */
  spend(chars: number): boolean {
    this.#chars += chars;
    return this.#chars >= yieldEveryChars || performance.now() - this.#startedMs >= yieldEveryMs;
  }

  async next(): Promise<void> {
    await nextWorkTurn(this.accountId);
    await this.#check();
    this.#isFirst = false;
    this.#chars = 0;
    this.#startedMs = performance.now();
  }
}

/**
 * Counts tokens, or returns null if there are more than `limit`. The work is bounded, regardless of the text's length.
 * It is done in turns, which the texts of one request share. Rejects with the signal's reason once it is aborted.
 */
export async function countTokensAsync(
  text: string,
  options: { limit: number; signal?: AbortSignal | undefined; turn?: CountingTurn; encoding?: EncodingName },
): Promise<number | null> {
  const { limit, signal, turn = new CountingTurn(), encoding = defaultEncoding } = options;
  signal?.throwIfAborted();
  if (mustExceed(text, limit)) return null;
  if (turn.mustWaitFor(text.length)) {
    await turn.next();
    signal?.throwIfAborted();
  }
  let count = 0;
  for (let start = 0; start < text.length;) {
    const end = findBlockEnd(text, start);
    count += countBlock(text, start, end, encoding);
    if (count > limit) return null;
    if (turn.spend(end - start)) {
      await turn.next();
      signal?.throwIfAborted();
    }
    start = end;
  }
  return count;
}

function mustExceed(text: string, limit: number): boolean {
  return text.length > 0 && text.length > limit * maxTokenChars;
}

function getEncoding(name: EncodingName): LoadedEncoding {
  let known = loaded.get(name);
  if (known === undefined) {
    // Counting is synchronous and few processes need it, hence `require` on first use.
    const encoding = createRequire(import.meta.url)(`gpt-tokenizer/encoding/${name}`) as Encoding;
    encoding.setMergeCacheSize(cachedWords);
    known = { encoding, charsSinceClear: 0 };
    loaded.set(name, known);
  }
  return known;
}

function countBlock(text: string, start: number, end: number, name: EncodingName): number {
  const used = getEncoding(name);
  used.charsSinceClear += end - start;
  if (used.charsSinceClear > clearCacheEveryChars) {
    used.encoding.clearMergeCache();
    used.charsSinceClear = 0;
  }
  const isWhole = start === 0 && end === text.length;
  return used.encoding.countTokens(isWhole ? text : copySlice(text, start, end), asText);
}

/** A V8 slice keeps the whole text alive, and the encoder's cache would keep the slice. */
function copySlice(text: string, start: number, end: number): string {
  return Buffer.from(text.slice(start, end), 'utf16le').toString('utf16le');
}
