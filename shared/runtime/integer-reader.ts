const [digit0, digit9, comma, space, tab, lineFeed, carriageReturn] = [
  0x30, 0x39, 0x2c, 0x20, 0x09, 0x0a, 0x0d,
];
/** Fewer digits than the largest integer that V8 keeps without a box of its own. */
const maxDigits = 9;

/**
 * Reads the arrays of a JSON text that hold nothing but small integers: quickly, and with 8 bytes of memory for each. There
 * may so be millions of them where there may be only thousands of other values.
 */
export class IntegerReader {
  readonly #most: number;
  readonly #mostOfArray: number;
  #count = 0;
  /** The last array that was read here, while it holds nothing else. */
  #array: unknown[] | null = null;

  /** @param most in all; further ones are not read here */
  constructor(most: number, mostOfArray: number) {
    this.#most = most;
    this.#mostOfArray = mostOfArray;
  }

  /** How many were read here and still lie in arrays of their own. */
  get count(): number {
    return this.#count;
  }

  /**
   * Adds to the array what can be read of it.
   * @returns where the first item begins that was not read; null where that is the first of all
   */
  read(chunk: Uint8Array, from: number, array: unknown[]): number | null {
    const before = array.length;
    const most = Math.min(this.#most - this.#count, this.#mostOfArray - before);
    if (most <= 0 || (before > 0 && array !== this.#array)) return null;
    const end = readIntegers(chunk, from, array, most);
    if (array.length === before) return null;
    this.#count += array.length - before;
    this.#array = array;
    return end;
  }

  /**
   * What of an array counts as values of any kind from now on, as this one is added to it: beside anything else each number
   * may take as much memory as they do.
   */
  findUncounted(array: unknown[], added: unknown): number {
    if (array !== this.#array || isSmallInteger(added)) return 0;
    this.#array = null;
    this.#count -= array.length;
    return array.length;
  }

  /** An array that grew has room for half as much again; its copy has none. */
  trim<T>(container: T): T | unknown[] {
    return this.#array !== null && container === this.#array ? this.#array.slice() : container;
  }
}

/** Whether a value takes no memory but its place in an array. */
const isSmallInteger = (value: unknown): boolean =>
  Number.isInteger(value) && Math.abs(value as number) < 10 ** maxDigits && !Object.is(value, -0);

/**
 * Reads integers that stand in the chunk with the comma behind them.
 * @returns where the first item begins that is not read: no such integer, the last of its array, or one whose end has not
 *   come yet
 */
function readIntegers(chunk: Uint8Array, from: number, array: unknown[], most: number): number {
  let start = from;
  for (let count = 0; count < most; count++) {
    let at = start;
    let value = 0;
    for (let byte = chunk[at]; byte !== undefined && byte >= digit0 && byte <= digit9; byte = chunk[++at]) {
      value = value * 10 + byte - digit0;
      if (at - start >= maxDigits) return start;
    }
    const digits = at - start;
    // JSON has no zeros in front.
    if (digits === 0 || (digits > 1 && chunk[start] === digit0)) return start;
    at = skipSpace(chunk, at);
    if (chunk[at] !== comma) return start;
    array.push(value);
    start = skipSpace(chunk, at + 1);
  }
  return start;
}

function skipSpace(chunk: Uint8Array, from: number): number {
  let at = from;
  for (; at < chunk.length; at++) {
    const byte = chunk[at]!;
    if (byte !== space && byte !== lineFeed && byte !== carriageReturn && byte !== tab) break;
  }
  return at;
}
