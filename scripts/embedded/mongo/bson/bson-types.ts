import { Binary, ObjectId } from 'bson';
import { isObject } from './document.ts';
import { unsupported } from '../errors.ts';
import { isNumber } from './numbers.ts';

/** Positions of the BSON types in MongoDB's order across types. Also the first byte of an index key. */
export const typeOrder = {
  null: 5,
  number: 10,
  string: 15,
  object: 20,
  array: 25,
  binary: 30,
  objectId: 35,
  boolean: 40,
  date: 45,
} as const;

/** @throws MongoError for types that the product never stores, such as Decimal128 and Timestamp */
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
  const { _bsontype: name = 'unknown' } = value as { _bsontype?: string };
  throw unsupported(`the BSON type ${name}`, 'BadValue');
}
