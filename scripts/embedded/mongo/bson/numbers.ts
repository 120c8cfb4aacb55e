import { Decimal128, Double, Int32, Long } from 'bson';
import { MongoError, refuse } from '../errors.ts';

export type BsonNumber = Int32 | Long | Double | Decimal128;

/** An exact decimal: `digits * 10 ** exponent`. */
export type ExactDecimal = { digits: bigint; exponent: number };

const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const int32 = { min: -(2n ** 31n), max: 2n ** 31n - 1n };

export function isNumber(value: unknown): value is BsonNumber {
  return (
    value instanceof Int32 || value instanceof Double || value instanceof Long || value instanceof Decimal128
  );
}

/** The nearest double; NaN for what is no number. */
export function toNumber(value: unknown): number {
  if (value instanceof Int32 || value instanceof Double) return value.value;
  if (value instanceof Long) return value.toNumber();
  if (value instanceof Decimal128) return Number(value.toString());
  return typeof value === 'number' ? value : NaN;
}

export function addNumbers(a: BsonNumber, b: BsonNumber): BsonNumber {
  return combine(
    a,
    b,
    (x, y) => x + y,
    (x, y) => x + y,
  );
}

export function subtractNumbers(a: BsonNumber, b: BsonNumber): BsonNumber {
  return combine(
    a,
    b,
    (x, y) => x - y,
    (x, y) => x - y,
  );
}

export function multiplyNumbers(a: BsonNumber, b: BsonNumber): BsonNumber {
  return combine(
    a,
    b,
    (x, y) => x * y,
    (x, y) => x * y,
  );
}

/** MongoDB's result types: a double if either is one, else exact int64, narrowed to int32 if both were. */
function combine(
  a: BsonNumber,
  b: BsonNumber,
  ofDoubles: (x: number, y: number) => number,
  ofIntegers: (x: bigint, y: bigint) => bigint,
): BsonNumber {
  if (a instanceof Decimal128 || b instanceof Decimal128) throw refuse('Decimal128 arithmetic');
  if (a instanceof Double || b instanceof Double) return new Double(ofDoubles(toNumber(a), toNumber(b)));
  const result = ofIntegers(toBigInt(a), toBigInt(b));
  return a instanceof Int32 && b instanceof Int32 ? narrowestInteger(result) : toLong(result);
}

export function toBigInt(value: Int32 | Long): bigint {
  return value instanceof Long ? value.toBigInt() : BigInt(value.value);
}

export function narrowestInteger(value: bigint): Int32 | Long {
  return value >= int32.min && value <= int32.max ? new Int32(Number(value)) : toLong(value);
}

export function toLong(value: bigint): Long {
  if (value < int64.min || value > int64.max) {
    throw new MongoError('BadValue', `integer overflow: ${value} does not fit in a 64-bit integer`);
  }
  return Long.fromBigInt(value);
}

/** What a finite number is exactly, where doubles would round it. */
export function toExactDecimal(value: BsonNumber | number): ExactDecimal {
  if (value instanceof Int32 || value instanceof Long) return { digits: toBigInt(value), exponent: 0 };
  if (value instanceof Decimal128) return parseDecimal(value.toString());
  let mantissa = typeof value === 'number' ? value : value.value;
  let halvings = 0;
  // Doubling is exact for a double that is not whole, so this ends in the integer m of m / 2^k = m * 5^k / 10^k.
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    halvings += 1;
  }
  return { digits: BigInt(mantissa) * 5n ** BigInt(halvings), exponent: -halvings };
}

export function subtractExact(a: ExactDecimal, b: ExactDecimal): ExactDecimal {
  const exponent = Math.min(a.exponent, b.exponent);
  const scale = (value: ExactDecimal) => value.digits * 10n ** BigInt(value.exponent - exponent);
  return { digits: scale(a) - scale(b), exponent };
}

function parseDecimal(text: string): ExactDecimal {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d*)\.?(\d*)(?:E([+-]?\d+))?$/i.exec(text) ?? [];
  return { digits: BigInt(`${sign}${whole}${fraction}`), exponent: Number(exponent) - fraction.length };
}
