import { areEqual } from '../bson/compare.ts';
import type { Doc } from '../bson/document.ts';
import { getField, getId, isObject, isOperatorObject, setField } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { getTypeName } from '../bson/type-names.ts';
import { updateOperators } from './update-operators.ts';

type Assignment = { operator: string; path: string; parts: string[]; operand: unknown };

/** Changes a document that the caller may spoil, and returns the changed one. Nothing else holds parts of it. */
export type Updater = (document: Doc, isInsert: boolean) => Doc;

/** An update document (operators, or a replacement) as a function. A bad one fails here, whatever it would meet. */
export function compileUpdate(update: unknown): Updater {
  if (Array.isArray(update)) throw refuse('an update by an aggregation pipeline', 'FailedToParse');
  if (!isObject(update)) throw new MongoError('FailedToParse', 'an update must be an object');
  if (!isOperatorObject(update)) return compileReplacement(update);
  const assignments = parseAssignments(update);
  return (document, isInsert) => {
    const id = getId(document);
    for (const assignment of assignments) {
      if (assignment.operator !== '$setOnInsert' || isInsert) assign(document, assignment);
    }
    if (id !== undefined && !areEqual(id, getId(document) ?? null)) throw immutableId();
    return document;
  };
}

function compileReplacement(replacement: Doc): Updater {
  const operator = Object.keys(replacement).find((name) => name.startsWith('$'));
  if (operator !== undefined) {
    throw new MongoError(
      'DollarPrefixedFieldName',
      `The dollar ($) prefixed field '${operator}' is not allowed`,
    );
  }
  return (document) => {
    const { _id: ownId, ...fields } = replacement;
    const id = getId(document) ?? ownId;
    if (ownId !== undefined && !areEqual(ownId, id)) throw immutableId();
    return id === undefined ? fields : { _id: id, ...fields };
  };
}

const immutableId = () =>
  new MongoError('ImmutableField', "the update would modify the immutable field '_id'");

function parseAssignments(update: Doc): Assignment[] {
  const assignments: Assignment[] = [];
  for (const [operator, operands] of Object.entries(update)) {
    if (operator !== '$unset' && !Object.hasOwn(updateOperators, operator)) {
      throw refuse(`Unknown modifier: ${operator}, which`, 'FailedToParse');
    }
    if (!isObject(operands)) {
      throw new MongoError('FailedToParse', `Modifiers operate on fields but ${operator} has no object`);
    }
    for (const [path, operand] of Object.entries(operands)) {
      assignments.push({ operator, path, parts: parsePath(path), operand });
    }
  }
  // MongoDB adds new fields in the order of their names, and so neighbours show every conflict.
  assignments.sort((a, b) => compareParts(a.parts, b.parts));
  for (const [i, { path, parts }] of assignments.entries()) {
    const previous = assignments[i - 1];
    if (previous?.parts.every((part, depth) => part === parts[depth])) {
      const message = `Updating the path '${path}' would create a conflict at '${previous.path}'`;
      throw new MongoError('ConflictingUpdateOperators', message);
    }
  }
  return assignments;
}

function parsePath(path: string): string[] {
  const parts = path.split('.');
  if (parts.includes(''))
    throw new MongoError('EmptyFieldName', `The update path '${path}' has an empty field name`);
  const special = parts.find((part) => part.startsWith('$'));
  if (special !== undefined)
    throw refuse(`the positional or $-prefixed part '${special}' of '${path}'`, 'BadValue');
  return parts;
}

function compareParts(a: string[], b: string[]): number {
  for (const [depth, part] of a.entries()) {
    const other = b[depth];
    if (other === undefined) return 1;
    if (part !== other) return part < other ? -1 : 1;
  }
  return a.length - b.length;
}

function assign(document: Doc, { operator, path, parts, operand }: Assignment): void {
  const creates = operator !== '$unset' && operator !== '$pull';
  const parent = findParent(document, parts, creates);
  if (parent === undefined) return;
  const name = parts.at(-1)!;
  if (operator === '$unset') return removeAt(parent, name);
  const current = readAt(parent, name);
  // An operator may keep or share what it is handed: no two documents live at once, so nothing is copied.
  const value = updateOperators[operator]!(path, current, operand);
  if (value !== undefined) writeAt(parent, name, value);
}

/** The object or array that holds the last part of the path; made on the way where the operator may create fields. */
function findParent(document: Doc, parts: string[], creates: boolean): Doc | unknown[] | undefined {
  let parent: Doc | unknown[] = document;
  for (const part of parts.slice(0, -1)) {
    let next = readAt(parent, part);
    if (next === undefined) {
      if (!creates) return undefined;
      next = {};
      writeAt(parent, part, next);
    }
    if (!isObject(next) && !Array.isArray(next)) {
      if (!creates) return undefined;
      const message = `Cannot create a field in element {${part}} of type ${getTypeName(next)}`;
      throw new MongoError('PathNotViable', message);
    }
    parent = next;
  }
  return parent;
}

const isIndex = (name: string) => /^(0|[1-9]\d*)$/.test(name);

function readAt(parent: Doc | unknown[], name: string): unknown {
  if (!Array.isArray(parent)) return getField(parent, name);
  return isIndex(name) ? parent[Number(name)] : undefined;
}

function writeAt(parent: Doc | unknown[], name: string, value: unknown): void {
  if (!Array.isArray(parent)) return setField(parent, name, value);
  if (!isIndex(name)) throw new MongoError('PathNotViable', `Cannot create field '${name}' in an array`);
  const index = Number(name);
  if (index > parent.length + 1_500_000) throw new MongoError('BadValue', `array index ${name} is too large`);
  while (parent.length < index) parent.push(null);
  parent[index] = value;
}

function removeAt(parent: Doc | unknown[], name: string): void {
  if (!Array.isArray(parent)) delete parent[name];
  else if (isIndex(name) && Number(name) < parent.length) parent[Number(name)] = null;
}

/** What an upsert starts from: the values that the filter demands by equality. */
export function buildUpsertSeed(filter: Doc): Doc {
  const seed: Doc = {};
  const seen = new Set<string>();
  const collect = (clauses: Doc) => {
    for (const [name, condition] of Object.entries(clauses)) {
      if (name === '$and') for (const branch of condition as Doc[]) collect(branch);
      if (name.startsWith('$')) continue;
      const hasEq = isOperatorObject(condition) && Object.hasOwn(condition, '$eq');
      if (isOperatorObject(condition) && !hasEq) continue;
      if (getTypeName(condition) === 'regex') continue;
      if (seen.has(name)) {
        throw new MongoError(
          'NotSingleValueField',
          `cannot infer query fields to set, path '${name}' is matched twice`,
        );
      }
      seen.add(name);
      const operand = hasEq ? condition.$eq : condition;
      assign(seed, { operator: '$set', path: name, parts: parsePath(name), operand });
    }
  };
  collect(filter);
  return seed;
}
