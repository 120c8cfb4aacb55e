import { Int32 } from 'bson';
import { compareValues } from '../bson/compare.ts';
import type { Doc } from '../bson/document.ts';
import { getField, isObject, isOperatorObject, setField } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { formatDate } from './format-date.ts';
import type { BsonNumber } from '../bson/numbers.ts';
import { addNumbers, isNumber, multiplyNumbers, subtractNumbers, toNumber } from '../bson/numbers.ts';

/** What an expression gives for a document; `undefined` is a missing value, which differs from null. */
export type Expression = (document: Doc) => unknown;

/** The few expressions of the subset: paths, literals, objects and arrays of them, and the operators below. */
export function compileExpression(spec: unknown): Expression {
  if (typeof spec === 'string' && spec.startsWith('$')) return compilePath(spec);
  if (Array.isArray(spec)) {
    const items = spec.map((item) => compileExpression(item));
    return (document) => items.map((item) => item(document) ?? null);
  }
  if (!isObject(spec)) return () => spec;
  if (isOperatorObject(spec)) return compileOperator(spec);
  const fields = Object.entries(spec).map(([name, value]) => [name, compileExpression(value)] as const);
  return (document) => {
    const object: Doc = {};
    for (const [name, expression] of fields) {
      const value = expression(document);
      if (value !== undefined) setField(object, name, value);
    }
    return object;
  };
}

function compilePath(spec: string): Expression {
  if (spec.startsWith('$$')) throw refuse(`the variable ${spec}`, 'Location17276');
  const parts = spec.slice(1).split('.');
  if (parts.some((part) => part === '' || part.startsWith('$'))) {
    throw new MongoError('Location16410', `'${spec}' is not a valid field path`);
  }
  return (document) => readPath(document, parts, 0);
}

/** An array on the way gives the array of what its elements have. */
function readPath(value: unknown, parts: string[], depth: number): unknown {
  const part = parts[depth];
  if (part === undefined) return value;
  if (isObject(value)) return readPath(getField(value, part), parts, depth + 1);
  if (!Array.isArray(value)) return undefined;
  return value
    .filter((item) => isObject(item) || Array.isArray(item))
    .map((item) => readPath(item, parts, depth))
    .filter((item) => item !== undefined);
}

function compileOperator(spec: Doc): Expression {
  const [name, ...others] = Object.keys(spec);
  if (name === undefined || others.length > 0) {
    throw new MongoError('Location15983', 'an object that is an expression must have exactly one field');
  }
  const compile = Object.hasOwn(operators, name) ? operators[name] : undefined;
  if (compile === undefined)
    throw refuse(`Unrecognized expression '${name}', which`, 'InvalidPipelineOperator');
  return compile(spec[name]);
}

const operators: Record<string, (operand: unknown) => Expression> = {
  $literal: (operand) => () => operand,
  $eq: (operand) => compileComparison('$eq', operand, (order) => order === 0),
  $ne: (operand) => compileComparison('$ne', operand, (order) => order !== 0),
  $gt: (operand) => compileComparison('$gt', operand, (order) => order > 0),
  $gte: (operand) => compileComparison('$gte', operand, (order) => order >= 0),
  $lt: (operand) => compileComparison('$lt', operand, (order) => order < 0),
  $lte: (operand) => compileComparison('$lte', operand, (order) => order <= 0),
  $cond: (operand) => {
    const [test, then, otherwise] = parseCond(operand).map((part) => compileExpression(part));
    return (document) => (isTruthy(test!(document)) ? then!(document) : otherwise!(document));
  },
  $ifNull: (operand) => {
    const choices = compileArguments('$ifNull', operand, 2, Infinity);
    return (document) => {
      for (const choice of choices.slice(0, -1)) {
        const value = choice(document);
        if (value !== undefined && value !== null) return value;
      }
      return choices.at(-1)!(document);
    };
  },
  $add: (operand) => compileArithmetic('$add', operand, addNumbers, new Int32(0)),
  $multiply: (operand) => compileArithmetic('$multiply', operand, multiplyNumbers, new Int32(1)),
  $subtract: (operand) => {
    const [first, second] = compileArguments('$subtract', operand, 2, 2);
    return (document) => calculate('$subtract', [first!(document), second!(document)], subtractNumbers);
  },
  $dateToString: (operand) => {
    if (!isObject(operand) || operand.date === undefined) {
      throw new MongoError('Location18628', "Missing 'date' parameter to $dateToString");
    }
    const { date, format = '%Y-%m-%dT%H:%M:%S.%LZ', timezone = 'UTC', ...others } = operand;
    if (Object.keys(others).length > 0) throw refuse(`${Object.keys(others).join()} in $dateToString`);
    if (timezone !== 'UTC' && timezone !== 'GMT') throw refuse('a timezone other than UTC in $dateToString');
    if (typeof format !== 'string') throw refuse('a computed format in $dateToString');
    const getDate = compileExpression(date);
    formatDate(new Date(0), format);
    return (document) => {
      const value = getDate(document);
      if (value === undefined || value === null) return null;
      if (!(value instanceof Date)) throw new MongoError('Location16006', "can't convert to Date");
      return formatDate(value, format);
    };
  },
};

function compileArguments(name: string, operand: unknown, least: number, most: number): Expression[] {
  const list = Array.isArray(operand) ? operand : [operand];
  if (list.length < least || list.length > most) {
    throw new MongoError(
      'Location16020',
      `Expression ${name} takes another number of arguments, not ${list.length}`,
    );
  }
  return list.map((argument) => compileExpression(argument));
}

function compileComparison(name: string, operand: unknown, accepts: (order: number) => boolean): Expression {
  const [left, right] = compileArguments(name, operand, 2, 2);
  return (document) => {
    const a = left!(document);
    const b = right!(document);
    // Unlike in a filter, a missing value is not null here but less than it.
    if (a === undefined || b === undefined) return accepts(Number(a !== undefined) - Number(b !== undefined));
    return accepts(compareValues(a, b));
  };
}

type Operation = (a: BsonNumber, b: BsonNumber) => BsonNumber;

function compileArithmetic(name: string, operand: unknown, operation: Operation, neutral: Int32): Expression {
  const terms = compileArguments(name, operand, 0, Infinity);
  return (document) => calculate(name, [neutral, ...terms.map((term) => term(document))], operation);
}

function calculate(name: string, values: unknown[], operation: Operation): unknown {
  if (values.some((value) => value === undefined || value === null)) return null;
  return values.reduce((total, value) => {
    if (isNumber(total) && isNumber(value)) return operation(total, value);
    throw refuse(`${name} of anything but numbers`, 'TypeMismatch');
  });
}

function parseCond(operand: unknown): unknown[] {
  const parts = isObject(operand) ? [operand.if, operand.then, operand.else] : operand;
  if (!Array.isArray(parts) || parts.length !== 3 || parts.includes(undefined)) {
    throw new MongoError('Location17080', '$cond needs an if, a then and an else');
  }
  return parts;
}

function isTruthy(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return false;
  return !isNumber(value) || toNumber(value) !== 0;
}
