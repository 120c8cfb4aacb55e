import { Double, Int32, Long, Timestamp } from 'bson';
import { MongoError } from '../errors.ts';

export type BsonNumber = Int32 | Long | Double;

const int64 = { min: -(2n ** 63n), max: 2n ** 63n - 1n };
const int32 = { min: -(2n ** 31n), max: 2n ** 31n - 1n };

export function isNumber(value: unknown): value is BsonNumber {
  if (value instanceof Int32 || value instanceof Double) return true;
  // In the driver, Timestamp is a subclass of Long.
  return value instanceof Long && !(value instanceof Timestamp);
}

/** Returns the nearest double, or NaN if the value is not a number. */
export function toNumber(value: unknown): number {
  if (value instanceof Int32 || value instanceof Double) return value.value;
  if (value instanceof Long) return value.toNumber();
  return typeof value === 'number' ? value : NaN;
}

/** Uses MongoDB's result types: a double if either is one, otherwise exact int64, narrowed to int32 if both were. */
export function addNumbers(a: BsonNumber, b: BsonNumber): BsonNumber {
  if (a instanceof Double || b instanceof Double) return new Double(toNumber(a) + toNumber(b));
  const sum = toBigInt(a) + toBigInt(b);
  return a instanceof Int32 && b instanceof Int32 ? narrowestInteger(sum) : toLong(sum);
}

export function toBigInt(value: Int32 | Long): bigint {
  return value instanceof Long ? value.toBigInt() : BigInt(value.value);
}

export function narrowestInteger(value: bigint): Int32 | Long {
  return value >= int32.min && value <= int32.max ? new Int32(Number(value)) : toLong(value);
}

function toLong(value: bigint): Long {
  if (value < int64.min || value > int64.max) {
    throw new MongoError('BadValue', `integer overflow: ${value} does not fit in a 64-bit integer`);
  }
  return Long.fromBigInt(value);
}
