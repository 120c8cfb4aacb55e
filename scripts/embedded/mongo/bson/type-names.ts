import {
  BSONRegExp,
  Binary,
  Decimal128,
  Double,
  Int32,
  Long,
  MaxKey,
  MinKey,
  ObjectId,
  Timestamp,
} from 'bson';
import { isObject } from './document.ts';
import { MongoError } from '../errors.ts';
import { isNumber, toNumber } from './numbers.ts';
import type { ValueTest } from './paths.ts';

/** The types that `$type` knows: name, number on the wire, test. */
const types: [name: string, number: number | undefined, test: ValueTest][] = [
  ['double', 1, (value) => value instanceof Double],
  ['string', 2, (value) => typeof value === 'string'],
  ['object', 3, (value) => isObject(value)],
  ['array', 4, (value) => Array.isArray(value)],
  ['binData', 5, (value) => value instanceof Binary],
  ['objectId', 7, (value) => value instanceof ObjectId],
  ['bool', 8, (value) => typeof value === 'boolean'],
  ['date', 9, (value) => value instanceof Date],
  ['null', 10, (value) => value === null],
  ['regex', 11, (value) => value instanceof BSONRegExp],
  ['int', 16, (value) => value instanceof Int32],
  ['timestamp', 17, (value) => value instanceof Timestamp],
  ['long', 18, (value) => value instanceof Long && !(value instanceof Timestamp)],
  ['decimal', 19, (value) => value instanceof Decimal128],
  ['minKey', -1, (value) => value instanceof MinKey],
  ['maxKey', 127, (value) => value instanceof MaxKey],
  ['number', undefined, isNumber],
];

export function compileTypeTest(operand: unknown): ValueTest {
  const wanted = (Array.isArray(operand) ? operand : [operand]).map((type: unknown) => {
    const number = toNumber(type);
    const found = types.find(([name, code]) => (typeof type === 'string' ? name === type : code === number));
    if (found === undefined) throw new MongoError('BadValue', `Unknown type name alias: ${String(type)}`);
    return found[2];
  });
  return (value) => wanted.some((test) => test(value));
}

export function getTypeName(value: unknown): string {
  if (value === undefined) return 'missing';
  return types.find(([, , test]) => test(value))?.[0] ?? 'unknown';
}
