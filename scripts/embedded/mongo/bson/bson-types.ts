import { BSONRegExp, Binary, MaxKey, MinKey, ObjectId, Timestamp } from 'bson';
import { isObject } from './document.ts';
import { refuse } from '../errors.ts';
import { isNumber } from './numbers.ts';

/** How an empty array is indexed and sorted: below null, as MongoDB does. */
export const emptyArray = Symbol('empty array');

/** Places of the BSON types in MongoDB's order across types; also the first byte of an index key. */
export const typeOrder = {
  minKey: 1,
  emptyArray: 4,
  null: 5,
  number: 10,
  string: 15,
  object: 20,
  array: 25,
  binary: 30,
  objectId: 35,
  boolean: 40,
  date: 45,
  timestamp: 47,
  regex: 50,
  maxKey: 127,
} as const;

export function getTypeOrder(value: unknown): number {
  if (value === undefined || value === null) return typeOrder.null;
  if (typeof value === 'string') return typeOrder.string;
  if (typeof value === 'boolean') return typeOrder.boolean;
  if (isNumber(value)) return typeOrder.number;
  if (Array.isArray(value)) return typeOrder.array;
  if (value instanceof Date) return typeOrder.date;
  if (value instanceof ObjectId) return typeOrder.objectId;
  if (isObject(value)) return typeOrder.object;
  if (value instanceof Binary) return typeOrder.binary;
  if (value instanceof Timestamp) return typeOrder.timestamp;
  if (value instanceof BSONRegExp) return typeOrder.regex;
  if (value === emptyArray) return typeOrder.emptyArray;
  if (value instanceof MinKey) return typeOrder.minKey;
  if (value instanceof MaxKey) return typeOrder.maxKey;
  throw refuse('comparing values of this BSON type');
}
