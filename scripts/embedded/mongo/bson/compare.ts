import { Int32 } from 'bson';
import { getTypeOrder } from './bson-types.ts';
import { KeyWriter } from './key-writer.ts';

/** Compares two values in MongoDB's order. A missing value is treated as null. */
export function compareValues(a: unknown, b: unknown): number {
  const order = getTypeOrder(a) - getTypeOrder(b);
  if (order !== 0) return order;
  if (typeof a === 'string' && typeof b === 'string') {
    return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  if (a instanceof Date && b instanceof Date) return a.getTime() - b.getTime();
  if (a instanceof Int32 && b instanceof Int32) return a.value - b.value;
  return Buffer.compare(encodeKey(a), encodeKey(b));
}

export function areEqual(a: unknown, b: unknown): boolean {
  return compareValues(a, b) === 0;
}

/**
 * Encodes a value as bytes that sort like the values and are equal for equal values, so that indexes, sorts and
 * comparisons use the same order.
 */
export function encodeKey(value: unknown): Buffer {
  return new KeyWriter().writeValue(value).toBuffer();
}
