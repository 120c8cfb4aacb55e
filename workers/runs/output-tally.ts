import { countTokens, defaultEncoding, type EncodingName } from '../../shared/catalog/count-tokens.ts';
import { tokensPerOutputImage } from '../../shared/catalog/usage-bounds.ts';

type Delta = Readonly<Record<string, unknown>>;

/** Text of this length is counted even if the count is not needed, to limit memory and the time of a later count. */
const maxHeldCharacters = 8_192;
/**
 * Only this many characters of a text are tokenized, to limit the time on the event loop. The remainder of a longer text
 * is assumed to have the same ratio of tokens to characters.
 */
const maxTokenizedCharacters = 8_192;
/** A longer word is not text but media as base64. */
const maxWordLength = 1_000;
/** Text in any language, and code, has at most this many bytes of UTF-8 per token. */
const maxBytesPerToken = 8;

/**
 * The output of one call, whose tokens are counted only when the count is needed: a vendor that reports its usage makes
 * it unnecessary. The text of a field is counted as a whole, however it was split into deltas.
 */
export class OutputTally {
  readonly #encoding: EncodingName;
  /** Uncounted text by choice and field, in order of arrival. */
  readonly #held = new Map<string, string>();
  #heldCharacters = 0;
  #countedTokens = 0;
  #heldBytes = 0;
  /** Parts of held text as they arrived, each at least a token. */
  #heldParts = 0;

  constructor(encoding: EncodingName = defaultEncoding) {
    this.#encoding = encoding;
  }

  /**
   * Adds everything in a delta, in fields of any name: text, reasoning, tool names and arguments. Adds a fixed number of
   * tokens per image and none for audio, because only the vendor can report the tokens of audio.
   */
  add(index: number, delta: Delta): void {
    for (const key in delta) {
      const value = delta[key];
      if (key === 'role' || value === null || value === undefined || value === '') continue;
      if (typeof value === 'string') this.#hold(index, key, value);
      else if (key === 'tool_calls' && Array.isArray(value)) this.#addCalls(index, value as ToolCallPart[]);
      else if (key === 'images' && Array.isArray(value))
        this.#countedTokens += value.length * tokensPerOutputImage;
      else this.#hold(index, key, JSON.stringify(value, removeMedia));
    }
  }

  get isEmpty(): boolean {
    return this.#held.size === 0 && this.#countedTokens === 0;
  }

  /**
   * An estimate without counting, which is not above the count: most vendors send a token per delta, none sends less.
   */
  get estimatedTokens(): number {
    return this.#countedTokens + Math.max(this.#heldParts, Math.floor(this.#heldBytes / maxBytesPerToken));
  }

  /** Counts what has been added so far. */
  count(): number {
    for (const text of this.#held.values()) this.#countedTokens += countText(text, this.#encoding);
    this.#held.clear();
    this.#heldCharacters = 0;
    this.#heldBytes = 0;
    this.#heldParts = 0;
    return this.#countedTokens;
  }

  #addCalls(index: number, calls: readonly ToolCallPart[]): void {
    for (const { index: position, function: called } of calls) {
      const field = `call ${position ?? 0}`;
      for (const part of [called?.name, called?.arguments])
        if (part) this.#hold(index, field, typeof part === 'string' ? part : JSON.stringify(part));
    }
  }

  #hold(index: number, field: string, text: string): void {
    const key = index === 0 ? field : `${index} ${field}`;
    this.#held.set(key, (this.#held.get(key) ?? '') + text);
    this.#heldParts += 1;
    this.#heldBytes += Buffer.byteLength(text);
    this.#heldCharacters += text.length;
    if (this.#heldCharacters > maxHeldCharacters) this.count();
  }
}

interface ToolCallPart {
  readonly index?: number;
  /** Some servers send the arguments as an object. */
  readonly function?: { readonly name?: unknown; readonly arguments?: unknown };
}

function countText(text: string, encoding: EncodingName): number {
  if (text.length <= maxTokenizedCharacters) return countTokens(text, encoding);
  return Math.ceil(
    (countTokens(text.slice(0, maxTokenizedCharacters), encoding) * text.length) / maxTokenizedCharacters,
  );
}

function removeMedia(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || value.length < maxWordLength) return value;
  return /\s/.test(value.slice(0, maxWordLength)) ? value : undefined;
}
