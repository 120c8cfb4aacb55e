import { ChunkList } from '../../platform/runtime/chunk-list.ts';
import { isScalarByte, parseToken } from '../../encoding/json-tokens.ts';
import { findCharacterEnd } from '../../encoding/utf8-check.ts';
import {
  FieldTexts,
  isBodyValue,
  isDataUri,
  isTextField,
  type LineFacts,
  type TextField,
} from './line-facts.ts';

/** No request is a hundredth as deep. */
const maxDepth = 10_000;
/** Longer names are not those of known fields. */
const maxNameBytes = 128;
/** More than the longest `custom_id`, each of whose 512 characters may be written as two escapes. */
const maxValueBytes = 8 * 1024;
/** Texts are decoded in parts of about this size. */
const textBytes = 32 * 1024;
const maxScalarBytes = 1_024;

const [quote, backslash, comma, colon, letterU] = [0x22, 0x5c, 0x2c, 0x3a, 0x75];
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d];
const nothing = Buffer.alloc(0);

type Expected = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end' | 'nothing';

/** What is done with the string that is being read. */
type Use = 'skip' | 'name' | 'value' | 'text';

/** `/`, `b`, `f`, `n`, `r`, `t`, a quote and a backslash. */
const isEscapable = (byte: number): boolean =>
  byte === quote ||
  byte === backslash ||
  byte === 0x2f ||
  byte === 0x62 ||
  byte === 0x66 ||
  byte === 0x6e ||
  byte === 0x72 ||
  byte === 0x74;

const isHexDigit = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);

const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === 0x0a;

/**
 * Checks a line of any length, chunk by chunk, and finds the same facts as `readShortLine`, without building its values.
 * Takes memory for a part of a text and for the names and values that it looks for, and time in proportion to the line.
 * The caller checks that the bytes are UTF-8, and takes the texts after each chunk.
 */
export class LongLine {
  /** Whether the body is read. Otherwise its facts are null. */
  readonly #readsBody: boolean;
  #facts: LineFacts = {};
  #problem: string | null = null;
  #isBlank = true;
  #expected: Expected = 'value';
  /** Whether each open container is an array, from the outermost on. */
  readonly #isArray: boolean[] = [];
  /** The current fields of the line and of its body. */
  #lineField = '';
  #bodyField = '';

  #token: 'string' | 'scalar' | null = null;
  #use: Use = 'skip';
  #isFirstPart = true;
  /** Bytes of the current escape so far; 0 outside an escape. */
  #escapeBytes = 0;
  /** Bytes of the current token that are needed. */
  #parts = new ChunkList();

  /** @param parts of the line that are read */
  constructor(parts: 'all' | 'names' = 'all') {
    this.#readsBody = parts === 'all';
  }

  /** Whether there was nothing but white space. */
  get isBlank(): boolean {
    return this.#isBlank;
  }

  get facts(): LineFacts {
    return this.#facts;
  }

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && this.#problem === null) {
      if (this.#token === 'string') at = this.#readString(chunk, at);
      else if (this.#token === 'scalar') at = this.#readScalar(chunk, at);
      else at = this.#readStructure(chunk, at);
    }
  }

  /** @returns what is wrong with the line; null if nothing is */
  end(): string | null {
    if (this.#token === 'scalar' && this.#problem === null) this.#endScalar(nothing);
    if (this.#problem === null && this.#expected !== 'nothing')
      this.#problem = 'The line is not complete JSON.';
    return this.#problem;
  }

  #readStructure(chunk: Buffer, from: number): number {
    const byte = chunk[from]!;
    const next = from + 1;
    if (isSpace(byte)) return next;
    this.#isBlank = false;
    const expected = this.#expected;
    const takesValue = expected === 'value' || expected === 'value or end';
    switch (byte) {
      case quote:
        if (takesValue) this.#startValue('string');
        else if (expected === 'key' || expected === 'key or end') this.#startName();
        else return this.#fail(next);
        this.#token = 'string';
        return next;
      case openObject:
      case openArray:
        return takesValue ? this.#open(byte === openArray, next) : this.#fail(next);
      case closeObject:
      case closeArray:
        return this.#close(byte === closeArray, next);
      case comma:
        if (expected !== 'comma or end') return this.#fail(next);
        this.#expected = this.#isArray.at(-1) === true ? 'value' : 'key';
        return next;
      case colon:
        if (expected !== 'colon') return this.#fail(next);
        this.#expected = 'value';
        return next;
      default:
        if (!takesValue || !isScalarByte(byte)) return this.#fail(next);
        this.#startValue('scalar');
        this.#token = 'scalar';
        return from;
    }
  }

  /** Whether the innermost container is the line or its body. */
  get #isInLine(): boolean {
    return this.#isArray.length === 1;
  }

  get #isInBody(): boolean {
    return this.#isArray.length === 2 && this.#isBelowBody;
  }

  /** Whether the current value is in the body, however deep. */
  get #isBelowBody(): boolean {
    return (
      this.#readsBody && this.#isArray.length >= 2 && this.#lineField === 'body' && this.#isArray[1] === false
    );
  }

  /** The field of the body that the current value belongs to, if it is one with texts. */
  get #textField(): TextField | null {
    return this.#isBelowBody && isTextField(this.#bodyField) ? this.#bodyField : null;
  }

  get #texts(): FieldTexts | null {
    const name = this.#textField;
    return name === null ? null : (this.#facts.body?.fields[name] ?? null);
  }

  #startName(): void {
    this.#use = this.#isInLine || this.#isInBody ? 'name' : 'skip';
    this.#isFirstPart = true;
  }

  #startValue(kind: 'string' | 'scalar' | 'object' | 'array'): void {
    this.#isFirstPart = true;
    this.#use = 'skip';
    const depth = this.#isArray.length;
    if (depth === 0) {
      if (kind !== 'object') this.#problem = 'The line is not a JSON object.';
    } else if (depth === 1) this.#startLineValue(kind);
    else if (this.#isInBody) this.#startBodyValue(kind);
    else {
      const texts = this.#texts;
      if (texts === null) return;
      if (kind === 'string') this.#use = 'text';
      if (depth === 3 && this.#isArray[2] === true) {
        if (texts.elements === 0) texts.isTokenArray = kind === 'scalar';
        texts.elements = (texts.elements ?? 0) + 1;
      }
    }
  }

  #startLineValue(kind: 'string' | 'scalar' | 'object' | 'array'): void {
    const facts = this.#facts;
    switch (this.#lineField) {
      case 'custom_id':
      case 'method':
      case 'url':
        // A text replaces it.
        facts[this.#lineField] = null;
        if (kind === 'string') this.#use = 'value';
        else if (kind !== 'scalar') facts[this.#lineField] = {};
        break;
      case 'body':
        facts.body = kind === 'object' && this.#readsBody ? { fields: {} } : null;
        break;
      default:
    }
  }

  #startBodyValue(kind: 'string' | 'scalar' | 'object' | 'array'): void {
    const { body } = this.#facts;
    if (!body) return;
    if (isBodyValue(this.#bodyField)) {
      body[this.#bodyField] = null;
      if (kind === 'string') this.#use = 'value';
    } else if (isTextField(this.#bodyField)) {
      const texts = new FieldTexts();
      if (kind === 'array') texts.elements = 0;
      if (kind === 'string') this.#use = 'text';
      body.fields[this.#bodyField] = texts;
    }
  }

  #open(isArray: boolean, next: number): number {
    this.#startValue(isArray ? 'array' : 'object');
    if (this.#isArray.length >= maxDepth) return this.#fail(next, 'The line is nested too deep.');
    this.#isArray.push(isArray);
    this.#expected = isArray ? 'value or end' : 'key or end';
    return next;
  }

  #close(isArray: boolean, next: number): number {
    const ends = isArray ? 'value or end' : 'key or end';
    if (this.#isArray.at(-1) !== isArray) return this.#fail(next);
    if (this.#expected !== 'comma or end' && this.#expected !== ends) return this.#fail(next);
    this.#isArray.pop();
    this.#endValue();
    return next;
  }

  #endValue(): void {
    this.#expected = this.#isArray.length === 0 ? 'nothing' : 'comma or end';
  }

  #readString(chunk: Buffer, from: number): number {
    let at = from;
    let escapeBytes = this.#escapeBytes;
    for (; at < chunk.length; at++) {
      const byte = chunk[at]!;
      if (escapeBytes === 0) {
        if (byte === quote) break;
        if (byte === backslash) escapeBytes = 1;
        else if (byte < 0x20) return this.#fail(at);
      } else if (escapeBytes === 1) {
        if (byte === letterU) escapeBytes = 2;
        else if (isEscapable(byte)) escapeBytes = 0;
        else return this.#fail(at);
      } else if (isHexDigit(byte)) escapeBytes = escapeBytes === 5 ? 0 : escapeBytes + 1;
      else return this.#fail(at);
    }
    this.#escapeBytes = escapeBytes;
    if (this.#use !== 'skip') this.#parts.add(chunk.subarray(from, at));
    if (at < chunk.length) {
      this.#endString();
      return at + 1;
    }
    this.#flushLong();
    return at;
  }

  #endString(): void {
    this.#token = null;
    if (this.#expected === 'key' || this.#expected === 'key or end') {
      this.#endName();
      this.#expected = 'colon';
      return;
    }
    if (this.#use === 'value') this.#setValue(this.#takeText(0));
    else if (this.#use === 'text') this.#addText(this.#takeText(0));
    this.#endValue();
  }

  #endName(): void {
    if (!this.#isInLine && !this.#isInBody) return;
    const name = this.#use === 'name' ? this.#takeText(0) : '';
    if (this.#isInLine) this.#lineField = name;
    else this.#bodyField = name;
  }

  /** Takes what is needed of a string that continues in the next chunk, so that it takes no more memory. */
  #flushLong(): void {
    const limit = { skip: 0, name: maxNameBytes, value: maxValueBytes, text: textBytes }[this.#use];
    if (this.#use === 'skip' || this.#parts.length < limit) return;
    const use = this.#use;
    const text = this.#takeText(this.#escapeBytes);
    if (use === 'text') this.#addText(text);
    else {
      // The rest of a value or a name that is too long for any field is not needed.
      if (use === 'value') this.#setValue(text);
      this.#parts.take();
      this.#use = 'skip';
    }
  }

  /** Decodes the bytes of the string so far, except the last ones and those of an incomplete character. */
  #takeText(exceptBytes: number): string {
    if (this.#parts.length === 0) return '';
    const bytes = this.#parts.take();
    const end = findCharacterEnd(bytes, bytes.length - exceptBytes);
    if (end < bytes.length) this.#parts.add(bytes.subarray(end));
    const text = bytes.toString('utf8', 0, end);
    return bytes.includes(backslash) ? (parseToken(`"${text}"`) as string) : text;
  }

  #addText(text: string): void {
    if (this.#isFirstPart && isDataUri(text)) {
      this.#use = 'skip';
      this.#parts.take();
    } else if (text !== '') this.#texts?.texts.push(text);
    this.#isFirstPart = false;
  }

  #setValue(value: unknown): void {
    if (this.#isInLine) {
      if (this.#lineField === 'custom_id' || this.#lineField === 'method' || this.#lineField === 'url')
        this.#facts[this.#lineField] = value;
    } else if (this.#isInBody && this.#facts.body && isBodyValue(this.#bodyField)) {
      this.#facts.body[this.#bodyField] = value;
    }
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
    this.#token = null;
    let bytes = last;
    if (this.#parts.length > 0) {
      this.#parts.add(last);
      bytes = this.#parts.take();
    }
    const value = readInteger(bytes) ?? parseToken(bytes.toString('latin1'));
    if (value === undefined) {
      this.#fail(0);
      return;
    }
    if (this.#isInLine || this.#isInBody) this.#setValue(value);
    if (typeof value === 'number' && this.#textField === 'input') this.#texts!.tokenIds += 1;
    this.#endValue();
  }

  #fail(next: number, problem = 'The line is not valid JSON.'): number {
    this.#problem ??= problem;
    return next;
  }
}

/** Reads the numbers of tokens, of which a line may have millions. @returns null for anything else */
function readInteger(bytes: Buffer): number | null {
  if (bytes.length > 9 || (bytes[0] === 0x30 && bytes.length > 1)) return null;
  let value = 0;
  for (const byte of bytes) {
    if (byte < 0x30 || byte > 0x39) return null;
    value = value * 10 + byte - 0x30;
  }
  return value;
}
