import { Int32, Timestamp } from 'bson';
import { areEqual, compareValues } from '../bson/compare.ts';
import { isObject, isOperatorObject } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { compileFilter } from '../query/match.ts';
import type { BsonNumber } from '../bson/numbers.ts';
import { addNumbers, isNumber, multiplyNumbers, toNumber } from '../bson/numbers.ts';
import { getTypeName } from '../bson/type-names.ts';

/** The value a field has after the operator; `undefined` means that it stays, or stays missing. */
export type UpdateOperator = (path: string, current: unknown, operand: unknown) => unknown;

export const updateOperators: Record<string, UpdateOperator> = {
  $set: (_path, _current, operand) => operand,
  $setOnInsert: (_path, _current, operand) => operand,
  $inc: (path, current, operand) => {
    const amount = requireNumber('$inc', path, operand);
    return current === undefined ? amount : addNumbers(requireNumber('$inc', path, current), amount);
  },
  $mul: (path, current, operand) => {
    const factor = requireNumber('$mul', path, operand);
    return multiplyNumbers(
      current === undefined ? new Int32(0) : requireNumber('$mul', path, current),
      factor,
    );
  },
  $min: (_path, current, operand) =>
    current === undefined || compareValues(operand, current) < 0 ? operand : undefined,
  $max: (_path, current, operand) =>
    current === undefined || compareValues(operand, current) > 0 ? operand : undefined,
  $currentDate: (path, _current, operand) => {
    const type = isObject(operand) ? operand.$type : operand;
    if (type === true || type === 'date') return new Date();
    if (type === 'timestamp') return new Timestamp({ t: Math.floor(Date.now() / 1000), i: 1 });
    throw new MongoError('BadValue', `$currentDate of ${path} needs true, 'date' or 'timestamp'`);
  },
  $push: (path, current, operand) => {
    const { $each, $slice } = parseModifiers('$push', operand, ['$each', '$slice']);
    const pushed = [...requireArray('$push', path, current), ...$each];
    if ($slice === undefined) return pushed;
    const count = toNumber($slice);
    if (!Number.isInteger(count)) throw new MongoError('BadValue', '$slice needs a whole number');
    return count < 0 ? pushed.slice(count) : pushed.slice(0, count);
  },
  $addToSet: (path, current, operand) => {
    const { $each } = parseModifiers('$addToSet', operand, ['$each']);
    const set = [...requireArray('$addToSet', path, current)];
    for (const value of $each) if (!set.some((present) => areEqual(present, value))) set.push(value);
    return set;
  },
  $pull: (path, current, operand) => {
    const isPulled = compilePull(operand);
    if (current === undefined) return undefined;
    return requireArray('$pull', path, current).filter((value) => !isPulled(value));
  },
};

function compilePull(operand: unknown): (value: unknown) => boolean {
  if (isObject(operand) && !isOperatorObject(operand)) {
    const matches = compileFilter(operand);
    return (value) => isObject(value) && matches(value);
  }
  // An array as operand pulls the elements equal to it, and must not match by one of its own elements.
  if (Array.isArray(operand)) return (value) => areEqual(value, operand);
  const matches = compileFilter({ value: operand });
  return (value) => matches({ value });
}

function requireNumber(operator: string, path: string, value: unknown): BsonNumber {
  if (isNumber(value)) return value;
  throw new MongoError(
    'TypeMismatch',
    `Cannot apply ${operator} to a value of non-numeric type: '${path}' and its operand must be numbers, not ${getTypeName(value)}`,
  );
}

function requireArray(operator: string, path: string, value: unknown): unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  const message = `The field '${path}' must be an array but is of type ${getTypeName(value)} (${operator})`;
  throw new MongoError('BadValue', message);
}

function parseModifiers(
  operator: string,
  operand: unknown,
  known: string[],
): { $each: unknown[]; $slice?: unknown } {
  if (!isObject(operand) || !Object.hasOwn(operand, '$each')) return { $each: [operand] };
  const unknown = Object.keys(operand).find((name) => !known.includes(name));
  if (unknown !== undefined) throw refuse(`${unknown} in ${operator}`, 'BadValue');
  const { $each, $slice } = operand;
  if (!Array.isArray($each)) throw new MongoError('TypeMismatch', `$each in ${operator} must be an array`);
  return { $each, $slice };
}
