import { invalidField, type AppError } from '../contract/errors.ts';
import {
  JsonReader,
  requestJsonLimits,
  maxJsonDepth,
  maxJsonValues,
  type JsonError,
  type JsonLimits,
} from '../encoding/json-reader.ts';
import { isNestedDeeper } from '../encoding/json-record.ts';
import { shorten } from '../platform/runtime/shorten.ts';
import { isWellFormed } from '../platform/runtime/surrogate-check.ts';

/**
 * Memory of a value in addition to its text. An empty object with its comma takes three bytes in a body and sixty in
 * memory.
 */
const bytesPerValue = 32;
/** Memory of an element in an array of only small integers. */
const bytesPerInteger = 8;

/** The line is one level around its body, and has a few more values. */
const lineJsonLimits: JsonLimits = {
  depth: maxJsonDepth + 1,
  values: maxJsonValues + 100,
  loneSurrogates: true,
  integers: 0,
};

/** Parses a large JSON body as it arrives. */
export class JsonBodyReader {
  readonly #reader: JsonReader;

  /**
   * @param integers maximum number of small integers in integer-only arrays, in addition to the other values of the
   * body
   * @param options.isWithinLine whether the body is part of a line of a batch, which `validateBody` then checks further
   */
  constructor(integers: number, { isWithinLine = false }: { readonly isWithinLine?: boolean } = {}) {
    const limits = isWithinLine ? lineJsonLimits : requestJsonLimits;
    this.#reader = new JsonReader({ ...limits, integers });
  }

  /** Memory that the parsed part takes in addition to the received bytes. */
  get extraBytes(): number {
    return this.#reader.values * bytesPerValue + this.#reader.integers * bytesPerInteger;
  }

  /** @throws AppError `validation_failed` */
  push(chunk: Buffer): void {
    readChunk(this.#reader, chunk);
  }

  /** @returns the body, for validation */
  end(): unknown {
    const read = this.#reader.end();
    if (read === null) throw toJsonError('invalid');
    return read.value;
  }
}

const byteOrderMark = '\ufeff';
const surrogateEscape = /\\u[dD][89a-fA-F]/;

/** Whether no text of a parsed value has half of a surrogate pair. @param text from which it was parsed */
export const isWellFormedJson = (text: string, value: unknown): boolean =>
  !surrogateEscape.test(text) || isWellFormed(value);

/** Parses a small JSON body in one go. @throws AppError `validation_failed` */
export function parseSmallJson(text: string): unknown {
  const value = parseJson(text.startsWith(byteOrderMark) ? text.slice(1) : text);
  checkDepth(value);
  // JsonReader throws an error with the path of the surrogate.
  if (!isWellFormedJson(text, value)) readChunk(new JsonReader(), Buffer.from(text));
  return value;
}

/**
 * Checks a body that was parsed as a part of other JSON.
 * @throws AppError `validation_failed` if it is nested too deep or has half of a surrogate pair
 */
export function checkParsedBody(body: unknown): void {
  checkDepth(body);
  // JsonReader throws an error with the path of the surrogate.
  if (!isWellFormed(body)) readChunk(new JsonReader(), Buffer.from(JSON.stringify(body)));
}

/** @throws AppError `validation_failed` */
export function checkDepth(value: unknown): void {
  if (isNestedDeeper(value, maxJsonDepth)) throw toJsonError('too_deep');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidJson(shorten((error as Error).message));
  }
}

function readChunk(reader: JsonReader, chunk: Buffer): void {
  const problem = reader.push(chunk);
  if (problem !== null) throw toJsonError(problem, reader.path);
}

/** Limit per name in the path to an error; a name can be as long as the body. */
const maxNameChars = 100;

function loneSurrogate(path: readonly (string | number)[]): AppError {
  const names = path.map((name) => (typeof name === 'string' ? shorten(name, maxNameChars) : name));
  const msg =
    'contains half of a surrogate pair, such as \\ud83d alone, which is not a valid character. Split text only between ' +
    'characters; in JavaScript, text.toWellFormed() replaces lone surrogates.';
  return invalidField(['body', ...names], msg, { type: 'unicode_invalid' });
}

function toJsonError(problem: JsonError, path: readonly (string | number)[] = []): AppError {
  switch (problem) {
    case 'too_deep':
      return invalidField(
        ['body'],
        `The body is nested more than ${maxJsonDepth} levels deep. Reduce the nesting.`,
      );
    case 'too_many_values':
      return invalidField(['body'], `The body contains more than ${maxJsonValues} values. Send fewer.`);
    case 'lone_surrogate':
      return loneSurrogate(path);
    case 'invalid':
      return invalidJson();
    default:
      return problem satisfies never;
  }
}

/** @param reason the parser's message, if it has one */
function invalidJson(reason?: string): AppError {
  const what = `The body is not valid JSON${reason === undefined ? '' : `: ${reason}`}`;
  const msg = `${what}. Create it with a JSON library, and send all of it.`;
  const msgRu =
    'Тело запроса — некорректный JSON. Формируйте его с помощью JSON-библиотеки и отправляйте целиком.';
  return invalidField(['body'], msg, { type: 'json_invalid', msgRu });
}
