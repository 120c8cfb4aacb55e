import { ChunkList } from '../platform/runtime/chunk-list.ts';
import { IntegerReader } from './integer-reader.ts';
import { isScalarByte, parseToken, setMember } from './json-tokens.ts';
import { SurrogateCheck } from '../platform/runtime/surrogate-check.ts';
import { findCharacterEnd } from './utf8-check.ts';

/** The limit that a JSON text exceeds, or `invalid` if it is not JSON. */
export type JsonError = 'too_deep' | 'too_many_values' | 'lone_surrogate' | 'invalid';

/** No API request is a tenth as deep, so code that walks a body may recurse. */
export const maxJsonDepth = 100;
/** The largest legal request is a list of 2048 texts. Tools and schemas have some thousands of values. */
export const maxJsonValues = 200_000;

export interface JsonLimits {
  readonly depth: number;
  readonly values: number;
  /** Whether strings may contain an escaped lone surrogate, which is not a character. */
  readonly loneSurrogates: boolean;
  /**
   * How many small integers are allowed in addition to the values, in arrays that hold only small integers. Such an
   * array takes 8 bytes of memory per integer. One array holds at most `values` integers.
   */
  readonly integers: number;
}

export const requestJsonLimits: JsonLimits = {
  depth: maxJsonDepth,
  values: maxJsonValues,
  loneSurrogates: false,
  integers: 0,
};

/** A long string is decoded in parts of about this size, so that no step takes longer for a longer string. */
const flushBytes = 1024 * 1024;
/** JSON does not limit the digits of a number, but no number needs this many. */
const maxScalarBytes = 1024;
/** `\u0000` */
const longestEscapeBytes = 6;

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const byteOrderMark = Buffer.from('\ufeff');
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];

type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end' | 'nothing';
type Container = unknown[] | Record<string, unknown>;

/**
 * Reads a JSON text chunk by chunk and builds the value that `JSON.parse` would return for the whole. The work per
 * chunk is bounded by its length, so a text of 80 MB never blocks the event loop, and its bytes need not be retained.
 * Reading stops at the first error, such as nesting that is too deep or too many values.
 *
 * `JSON.parse` is up to seven times as fast, but needs the whole text, and blocks for 150 to 500 ms for 78 MB (0033).
 * Small texts are left to it.
 */
export class JsonReader {
  readonly #limits: JsonLimits;
  #expected: Expected = 'value';
  #token: 'string' | 'scalar' | null = null;
  readonly #containers: Container[] = [];
  readonly #keys: string[] = [];
  #values = 1;
  readonly #integers: IntegerReader;
  #result: unknown;
  #error: JsonError | null = null;

  /** Bytes of the byte order mark skipped so far. Its full length once the text that follows has begun. */
  #markBytes = 0;
  /** Bytes of the current token from earlier chunks. */
  readonly #parts = new ChunkList();
  /** Decoded text of the current string. Empty until the string is flushed for the first time. */
  #text = '';
  #isEscaped = false;
  /** Where the last escape of the current string started, counted from the first byte in `#parts`. */
  #lastEscapeAt = -1;
  #isAscii = true;
  readonly #surrogates = new SurrogateCheck();

  constructor(limits = requestJsonLimits) {
    this.#limits = limits;
    this.#integers = new IntegerReader(limits.integers, limits.values);
  }

  /** Number of values so far, roughly. Small values take memory in proportion to their number. */
  get values(): number {
    return this.#values;
  }

  /** Number of small integers, which `values` does not include. */
  get integers(): number {
    return this.#integers.count;
  }

  /** Path to the value being read, such as `["messages", 0, "content"]`. Points to the error once there is one. */
  get path(): (string | number)[] {
    let depth = 0;
    return this.#containers.flatMap<string | number>((container) =>
      Array.isArray(container) ? [container.length] : this.#keys.slice(depth, ++depth),
    );
  }

  /** @returns the first error found so far */
  push(chunk: Buffer): JsonError | null {
    let at = this.#markBytes < byteOrderMark.length ? this.#skipMark(chunk) : 0;
    while (at < chunk.length && this.#error === null) {
      if (this.#token === 'string') at = this.#readString(chunk, at);
      else if (this.#token === 'scalar') at = this.#readScalar(chunk, at);
      else at = this.#readStructure(chunk, at);
    }
    return this.#error;
  }

  /** @returns the value, or null if the text is incomplete */
  end(): { readonly value: unknown } | null {
    if (this.#token === 'scalar') this.#endScalar(Buffer.alloc(0));
    return this.#error === null && this.#expected === 'nothing' ? { value: this.#result } : null;
  }

  #skipMark(chunk: Buffer): number {
    let at = 0;
    while (at < chunk.length && chunk[at] === byteOrderMark[this.#markBytes]) {
      this.#markBytes += 1;
      at += 1;
    }
    if (at < chunk.length) this.#markBytes = byteOrderMark.length;
    return at;
  }

  #readStructure(chunk: Buffer, from: number): number {
    const byte = chunk[from]!;
    const expected = this.#expected;
    const takesValue = expected === 'value' || expected === 'value or end';
    const next = from + 1;
    switch (byte) {
      case 0x20:
      case 0x09:
      case 0x0a:
      case 0x0d:
        return next;
      case quote:
        if (!takesValue && expected !== 'key' && expected !== 'key or end') return this.#fail(next);
        this.#token = 'string';
        return next;
      case openObject:
      case openArray:
        return takesValue ? this.#open(byte === openArray ? [] : {}, next) : this.#fail(next);
      case closeObject:
      case closeArray:
        return this.#close(byte === closeArray, next);
      case comma:
        return expected === 'comma or end' ? this.#readComma(next) : this.#fail(next);
      case colon:
        if (expected !== 'colon') return this.#fail(next);
        this.#expected = 'value';
        return next;
      default:
        return takesValue ? this.#startScalar(chunk, from) : this.#fail(next);
    }
  }

  #startScalar(chunk: Buffer, from: number): number {
    const array = this.#containers.at(-1);
    const end = Array.isArray(array) ? this.#integers.read(chunk, from, array) : null;
    if (end === null) this.#token = 'scalar';
    else this.#expected = 'value';
    return end ?? from;
  }

  #open(container: Container, next: number): number {
    this.#values += 1;
    if (this.#containers.length >= this.#limits.depth) return this.#fail(next, 'too_deep');
    if (this.#values > this.#limits.values) return this.#fail(next, 'too_many_values');
    this.#containers.push(container);
    this.#expected = Array.isArray(container) ? 'value or end' : 'key or end';
    return next;
  }

  #close(isArray: boolean, next: number): number {
    const ends = isArray ? 'value or end' : 'key or end';
    const container = this.#containers.at(-1);
    if (container === undefined || Array.isArray(container) !== isArray) return this.#fail(next);
    if (this.#expected !== 'comma or end' && this.#expected !== ends) return this.#fail(next);
    this.#containers.pop();
    this.#add(this.#integers.trim(container));
    return next;
  }

  #readComma(next: number): number {
    this.#values += 1;
    if (this.#values > this.#limits.values) return this.#fail(next, 'too_many_values');
    this.#expected = Array.isArray(this.#containers.at(-1)) ? 'value' : 'key';
    return next;
  }

  #readString(chunk: Buffer, from: number): number {
    const before = this.#parts.length - from;
    let at = from;
    let bits = 0;
    for (; at < chunk.length; at++) {
      const byte = chunk[at]!;
      bits |= byte;
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === backslash) {
        this.#isEscaped = true;
        this.#lastEscapeAt = before + at;
      } else if (byte === quote) break;
      else if (byte < 0x20) return this.#fail(at + 1);
    }
    if (bits >= 0x80) this.#isAscii = false;
    if (at < chunk.length) {
      this.#endString(chunk.subarray(from, at));
      return at + 1;
    }
    this.#parts.add(chunk.subarray(from));
    if (this.#parts.length >= flushBytes) this.#flush();
    return at;
  }

  #endString(last: Buffer): void {
    const text = this.#decode(this.#takeParts(last));
    if (text === null) return;
    if (this.#surrogates.isOpen) {
      this.#fail(0, 'lone_surrogate');
      return;
    }
    const whole = this.#text + text;
    this.#text = '';
    this.#lastEscapeAt = -1;
    this.#isAscii = true;
    this.#token = null;
    if (this.#expected === 'value' || this.#expected === 'value or end') {
      this.#add(whole);
      return;
    }
    this.#keys.push(whole);
    this.#expected = 'colon';
  }

  /** Decodes the pending part of a long string without splitting an escape or a character. */
  #flush(): void {
    const bytes = this.#takeParts(Buffer.alloc(0));
    const isEscapeOpen = this.#lastEscapeAt >= 0 && bytes.length - this.#lastEscapeAt < longestEscapeBytes;
    const cut = findCharacterEnd(bytes, isEscapeOpen ? this.#lastEscapeAt : bytes.length);
    const text = this.#decode(bytes.subarray(0, cut));
    if (text === null) return;
    this.#text += text;
    this.#lastEscapeAt = isEscapeOpen ? this.#lastEscapeAt - cut : -1;
    if (cut < bytes.length) this.#parts.add(bytes.subarray(cut));
  }

  /** Returns null for an invalid escape or a lone surrogate. */
  #decode(bytes: Buffer): string | null {
    const text = bytes.toString(this.#isAscii ? 'latin1' : 'utf8');
    const hasEscapes = bytes.includes(backslash);
    const decoded = hasEscapes ? (parseToken(`"${text}"`) as string | undefined) : text;
    if (decoded === undefined) this.#fail(0);
    else if (this.#limits.loneSurrogates || !(hasEscapes || this.#surrogates.isOpen)) return decoded;
    else if (this.#surrogates.take(decoded)) return decoded;
    else this.#fail(0, 'lone_surrogate');
    return null;
  }

  #readScalar(chunk: Buffer, from: number): number {
    let at = from;
    while (at < chunk.length && isScalarByte(chunk[at]!)) at += 1;
    if (this.#parts.length + at - from > maxScalarBytes) return this.#fail(at);
    if (at < chunk.length) this.#endScalar(chunk.subarray(from, at));
    else this.#parts.add(chunk.subarray(from));
    return at;
  }

  #endScalar(last: Buffer): void {
    const text = this.#takeParts(last).toString('latin1');
    this.#token = null;
    const value = parseToken(text);
    if (value === undefined) this.#fail(0);
    else this.#add(value);
  }

  #add(value: unknown): void {
    const container = this.#containers.at(-1);
    this.#expected = container === undefined ? 'nothing' : 'comma or end';
    if (container === undefined) this.#result = value;
    else if (Array.isArray(container)) {
      this.#values += this.#integers.countReclassified(container, value);
      container.push(value);
    } else setMember(container, this.#keys.pop()!, value);
  }

  #takeParts(last: Buffer): Buffer {
    if (this.#parts.length === 0) return last;
    this.#parts.add(last);
    return this.#parts.take();
  }

  #fail(next: number, error: JsonError = 'invalid'): number {
    this.#error ??= error;
    return next;
  }
}
