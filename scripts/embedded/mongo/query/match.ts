import { getTypeOrder, typeOrder } from '../bson/bson-types.ts';
import { compareValues, encodeKey } from '../bson/compare.ts';
import type { Doc } from '../bson/document.ts';
import { isObject, isOperatorObject } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';
import type { ValueTest } from '../bson/paths.ts';
import { parsePath, someAt } from '../bson/paths.ts';

export type Predicate = (document: Doc) => boolean;

type FieldOperator = (path: string, operand: unknown) => Predicate;

/**
 * Compiles a filter into a predicate. Checks every operator, so that an invalid one fails even on an empty collection.
 */
export function compileFilter(filter: Doc): Predicate {
  return allOf(Object.entries(filter).map(([name, operand]) => compileClause(name, operand)));
}

function compileClause(name: string, operand: unknown): Predicate {
  if (name === '$and') return allOf(compileBranches(name, operand));
  if (name === '$or') return anyOf(compileBranches(name, operand));
  if (name.startsWith('$')) throw unsupported(`unknown top level operator: ${name}, which`, 'BadValue');
  return compileField(name, operand);
}

function compileBranches(name: string, operand: unknown): Predicate[] {
  if (!Array.isArray(operand) || operand.length === 0 || !operand.every((branch) => isObject(branch))) {
    throw new MongoError('BadValue', `${name} argument must be a nonempty array of objects`);
  }
  return operand.map((branch) => compileFilter(branch));
}

function compileField(path: string, condition: unknown): Predicate {
  if (!isOperatorObject(condition)) return anyValue(path, equals(condition));
  return allOf(
    Object.entries(condition).map(([name, operand]) => {
      const operator = Object.hasOwn(fieldOperators, name) ? fieldOperators[name] : undefined;
      if (operator === undefined) throw unsupported(`unknown operator: ${name}, which`, 'BadValue');
      return operator(path, operand);
    }),
  );
}

const fieldOperators: Record<string, FieldOperator> = {
  $eq: (path, operand) => anyValue(path, equals(operand)),
  $ne: (path, operand) => not(anyValue(path, equals(operand))),
  $gt: (path, operand) =>
    anyValue(
      path,
      compares(operand, (order) => order > 0),
    ),
  $gte: (path, operand) =>
    anyValue(
      path,
      compares(operand, (order) => order >= 0),
    ),
  $lt: (path, operand) =>
    anyValue(
      path,
      compares(operand, (order) => order < 0),
    ),
  $lte: (path, operand) =>
    anyValue(
      path,
      compares(operand, (order) => order <= 0),
    ),
  $in: (path, operand) => anyValue(path, isOneOf('$in', operand)),
  $nin: (path, operand) => not(anyValue(path, isOneOf('$nin', operand))),
  $exists: (path, operand) => {
    const exists = wholeValue(path, (value) => value !== undefined);
    return isTruthy(operand) ? exists : not(exists);
  },
};

function anyValue(path: string, test: ValueTest): Predicate {
  const parts = parsePath(path);
  return (document) => someAt(document, parts, test, true);
}

function wholeValue(path: string, test: ValueTest): Predicate {
  const parts = parsePath(path);
  return (document) => someAt(document, parts, test, false);
}

function equals(operand: unknown): ValueTest {
  const type = getTypeOrder(operand);
  if (type === typeOrder.null) return (value) => value === undefined || value === null;
  if (typeof operand === 'string' || typeof operand === 'boolean') return (value) => value === operand;
  const key = encodeKey(operand);
  return (value) => value !== undefined && getTypeOrder(value) === type && encodeKey(value).equals(key);
}

/** Compares only values of the operand's type. NaN is neither less nor greater than any value. */
function compares(operand: unknown, accepts: (order: number) => boolean): ValueTest {
  const type = getTypeOrder(operand);
  if (type === typeOrder.object || type === typeOrder.array)
    throw unsupported('an order of objects or arrays in a filter', 'BadValue');
  if (type === typeOrder.null) return (value) => accepts(0) && (value === undefined || value === null);
  const isNaN = isNumber(operand) && Number.isNaN(toNumber(operand));
  return (value) => {
    if (value === undefined || getTypeOrder(value) !== type) return false;
    if (type === typeOrder.number && (isNaN || Number.isNaN(toNumber(value)))) {
      return isNaN && Number.isNaN(toNumber(value)) && accepts(0);
    }
    return accepts(compareValues(value, operand));
  };
}

function isOneOf(name: string, operand: unknown): ValueTest {
  if (!Array.isArray(operand)) throw new MongoError('BadValue', `${name} needs an array`);
  const texts = new Set(operand.filter((value) => typeof value === 'string'));
  const tests = operand
    .filter((value) => typeof value !== 'string')
    .map((value) => {
      if (isOperatorObject(value)) throw new MongoError('BadValue', `cannot nest $ under ${name}`);
      return equals(value);
    });
  return (value) => (typeof value === 'string' && texts.has(value)) || tests.some((test) => test(value));
}

const isTruthy = (value: unknown) =>
  value !== false && value !== null && value !== undefined && !(isNumber(value) && toNumber(value) === 0);

const not =
  (predicate: Predicate): Predicate =>
  (document) =>
    !predicate(document);

function allOf(predicates: Predicate[]): Predicate {
  if (predicates.length === 1) return predicates[0]!;
  return (document) => predicates.every((predicate) => predicate(document));
}

function anyOf(predicates: Predicate[]): Predicate {
  return (document) => predicates.some((predicate) => predicate(document));
}
