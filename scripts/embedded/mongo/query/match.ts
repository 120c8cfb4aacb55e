import { BSONRegExp } from 'bson';
import { getTypeOrder, typeOrder } from '../bson/bson-types.ts';
import { areEqual, compareValues } from '../bson/compare.ts';
import type { Doc } from '../bson/document.ts';
import { isObject, isOperatorObject } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { compileRegex } from './regex.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';
import { compileTypeTest } from '../bson/type-names.ts';
import type { ValueTest } from '../bson/paths.ts';
import { someAt } from '../bson/paths.ts';

export type Predicate = (document: Doc) => boolean;

type FieldOperator = (path: string, operand: unknown, siblings: Doc) => Predicate;

const always: Predicate = () => true;

/** A filter as a predicate. Every operator in it is checked here, so that a bad one fails on an empty collection too. */
export function compileFilter(filter: Doc): Predicate {
  return allOf(Object.entries(filter).map(([name, operand]) => compileClause(name, operand)));
}

function compileClause(name: string, operand: unknown): Predicate {
  if (name === '$and') return allOf(compileBranches(name, operand));
  if (name === '$or') return anyOf(compileBranches(name, operand));
  if (name === '$nor') return not(anyOf(compileBranches(name, operand)));
  if (name === '$comment') return always;
  if (name.startsWith('$')) throw refuse(`unknown top level operator: ${name}, which`, 'BadValue');
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
      if (operator === undefined) throw refuse(`unknown operator: ${name}, which`, 'BadValue');
      return operator(path, operand, condition);
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
  $type: (path, operand) => anyValue(path, compileTypeTest(operand)),
  $not: (path, operand) => {
    if (!isOperatorObject(operand) && !(operand instanceof BSONRegExp)) {
      throw new MongoError('BadValue', '$not needs a regex or a document');
    }
    return not(compileField(path, operand));
  },
  $regex: (path, operand, siblings) => anyValue(path, matches(operand, siblings.$options)),
  $options: (_path, _operand, siblings) => {
    if (siblings.$regex === undefined) throw new MongoError('BadValue', '$options needs a $regex');
    return always;
  },
  $size: (path, operand) => {
    const size = toNumber(operand);
    if (!Number.isInteger(size) || size < 0) {
      throw new MongoError('BadValue', '$size needs a whole number that is not negative');
    }
    return wholeValue(path, (value) => Array.isArray(value) && value.length === size);
  },
  $all: (path, operand) => {
    if (!Array.isArray(operand)) throw new MongoError('BadValue', '$all needs an array');
    if (operand.length === 0) return () => false;
    return allOf(
      operand.map((value) => {
        if (isOperatorObject(value)) throw refuse('an operator inside $all', 'BadValue');
        return anyValue(path, equals(value));
      }),
    );
  },
  $elemMatch: (path, operand) => {
    if (!isObject(operand)) throw new MongoError('BadValue', '$elemMatch needs an Object');
    const isOfValues = isOperatorObject(operand) && !/^\$(and|or|nor)$/.test(Object.keys(operand)[0]!);
    const inner = isOfValues ? compileField('value', operand) : compileFilter(operand);
    const test: ValueTest = isOfValues
      ? (value) => inner({ value: wrapArray(value) })
      : (value) => isObject(value) && inner(value);
    return wholeValue(path, (value) => Array.isArray(value) && value.some(test));
  },
};

/** An element that is an array itself is one value to `$elemMatch`; one more array keeps it from being entered. */
const wrapArray = (value: unknown) => (Array.isArray(value) ? [value] : value);

function anyValue(path: string, test: ValueTest): Predicate {
  const parts = path.split('.');
  return (document) => someAt(document, parts, test, true);
}

function wholeValue(path: string, test: ValueTest): Predicate {
  const parts = path.split('.');
  return (document) => someAt(document, parts, test, false);
}

function equals(operand: unknown): ValueTest {
  if (operand instanceof BSONRegExp) {
    const regex = compileRegex(operand.pattern, operand.options);
    return (value) => (typeof value === 'string' ? regex.test(value) : isEqualRegex(value, operand));
  }
  if (operand === null || operand === undefined) return (value) => value === undefined || value === null;
  if (typeof operand === 'string' || typeof operand === 'boolean') return (value) => value === operand;
  const type = getTypeOrder(operand);
  return (value) => value !== undefined && getTypeOrder(value) === type && areEqual(value, operand);
}

const isEqualRegex = (value: unknown, regex: BSONRegExp) =>
  value instanceof BSONRegExp && areEqual(value, regex);

/** Only values of the operand's own type compare; NaN is neither below nor above anything. */
function compares(operand: unknown, accepts: (order: number) => boolean): ValueTest {
  if (operand instanceof BSONRegExp)
    throw new MongoError('BadValue', "Can't have RegEx as arg to a comparison");
  const type = getTypeOrder(operand);
  if (type === typeOrder.minKey || type === typeOrder.maxKey) throw refuse('comparing with MinKey or MaxKey');
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

function matches(operand: unknown, options: unknown): ValueTest {
  const isRegex = operand instanceof BSONRegExp;
  if (!isRegex && typeof operand !== 'string') throw new MongoError('BadValue', '$regex has to be a string');
  const flags = options ?? (isRegex ? operand.options : '');
  if (typeof flags !== 'string') throw new MongoError('BadValue', '$options has to be a string');
  const regex = compileRegex(isRegex ? operand.pattern : operand, flags);
  return (value) => typeof value === 'string' && regex.test(value);
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
