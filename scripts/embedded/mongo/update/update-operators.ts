import { areEqual, compareValues } from '../bson/compare.ts';
import { isObject } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import type { BsonNumber } from '../bson/numbers.ts';
import { addNumbers, isNumber } from '../bson/numbers.ts';

export type UpdateOperator = {
  /** Throws if the operand is invalid for any document. */
  check(path: string, operand: unknown): void;
  /** Returns the field's value after the operator. `undefined` leaves it unchanged or missing. */
  apply(path: string, current: unknown, operand: unknown): unknown;
};

const acceptsAll = (): void => undefined;

export const updateOperators: Record<string, UpdateOperator> = {
  $set: { check: acceptsAll, apply: (_path, _current, operand) => operand },
  $setOnInsert: { check: acceptsAll, apply: (_path, _current, operand) => operand },
  $inc: {
    check: requireNumber,
    apply(path, current, operand) {
      const amount = requireNumber(path, operand);
      return current === undefined ? amount : addNumbers(requireNumber(path, current), amount);
    },
  },
  $min: {
    check: acceptsAll,
    apply: (_path, current, operand) =>
      current === undefined || compareValues(operand, current) < 0 ? operand : undefined,
  },
  $max: {
    check: acceptsAll,
    apply: (_path, current, operand) =>
      current === undefined || compareValues(operand, current) > 0 ? operand : undefined,
  },
  $addToSet: {
    check: (_path, operand) => readEach(operand),
    apply(path, current, operand) {
      const set = [...requireArray(path, current)];
      for (const value of readEach(operand)) {
        if (!set.some((present) => areEqual(present, value))) set.push(value);
      }
      return set;
    },
  },
};

function requireNumber(path: string, value: unknown): BsonNumber {
  if (isNumber(value)) return value;
  throw new MongoError('TypeMismatch', `Cannot apply $inc to '${path}': both values must be numbers`);
}

function requireArray(path: string, value: unknown): unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw new MongoError('BadValue', `Cannot apply $addToSet to the field '${path}', which is not an array`);
}

function readEach(operand: unknown): unknown[] {
  if (!isObject(operand) || !Object.hasOwn(operand, '$each')) return [operand];
  const { $each, ...others } = operand;
  if (Object.keys(others).length > 0)
    throw unsupported(`${Object.keys(others).join()} in $addToSet`, 'BadValue');
  if (!Array.isArray($each)) throw new MongoError('TypeMismatch', '$each in $addToSet must be an array');
  return $each;
}
