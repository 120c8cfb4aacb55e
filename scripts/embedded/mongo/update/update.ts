import type { Doc } from '../bson/document.ts';
import { encodeDocument, getField, getId, isObject, isOperatorObject, setField } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import { parsePath } from '../bson/paths.ts';
import { updateOperators } from './update-operators.ts';

type Assignment = { operator: string; path: string; parts: string[]; operand: unknown };

/** Changes a document in place if possible, and returns the changed one. The document must not be shared. */
export type Updater = (document: Doc, isInsert: boolean) => Doc;

/** Compiles an update document into a function. Throws if it is invalid, regardless of the documents it would match. */
export function compileUpdate(update: unknown): Updater {
  if (Array.isArray(update)) throw unsupported('an update by an aggregation pipeline', 'FailedToParse');
  if (!isObject(update)) throw new MongoError('FailedToParse', 'an update must be an object');
  if (!isOperatorObject(update)) throw unsupported('an update that replaces the document', 'FailedToParse');
  const assignments = parseAssignments(update);
  return (document, isInsert) => {
    const id = getId(document);
    // Keep the encoded bytes for the comparison, because an _id that is an object could be changed in place.
    const idBytes = id === undefined ? undefined : encodeDocument({ id });
    for (const assignment of assignments) {
      if (assignment.operator === '$setOnInsert' && !isInsert) continue;
      assign(document, assignment);
      if (idBytes === undefined || assignment.parts[0] !== '_id') continue;
      if (!encodeDocument({ id: getId(document) }).equals(idBytes)) throw immutableId();
    }
    return document;
  };
}

const immutableId = () =>
  new MongoError('ImmutableField', "the update would modify the immutable field '_id'");

/** Checks in MongoDB's order, because only the first error is reported. */
function parseAssignments(update: Doc): Assignment[] {
  const assignments: Assignment[] = [];
  const assigned = new AssignedPaths('ConflictingUpdateOperators');
  for (const [operator, operands] of Object.entries(update)) {
    const definition = Object.hasOwn(updateOperators, operator) ? updateOperators[operator] : undefined;
    if (operator !== '$unset' && definition === undefined) {
      throw unsupported(`Unknown modifier: ${operator}, which`, 'FailedToParse');
    }
    if (!isObject(operands)) {
      throw new MongoError('FailedToParse', `Modifiers operate on fields but ${operator} has no object`);
    }
    for (const [path, operand] of Object.entries(operands)) {
      const parts = parseUpdatePath(path);
      definition?.check(path, operand);
      assigned.add(path, parts);
      assignments.push({ operator, path, parts, operand });
    }
  }
  // MongoDB adds new fields in the order of their names.
  return assignments.sort((a, b) => compareParts(a.parts, b.parts));
}

/** Rejects a path that is set twice, or that is inside or around another path that is set. */
class AssignedPaths {
  readonly #codeName: string;
  readonly #setPaths = new Set<string>();
  readonly #prefixes = new Set<string>();

  /** @param codeName code name of the error */
  constructor(codeName: string) {
    this.#codeName = codeName;
  }

  add(path: string, parts: string[]): void {
    const prefixes = parts.map((_, depth) => parts.slice(0, depth + 1).join('.'));
    const conflict = this.#prefixes.has(path) ? path : prefixes.find((prefix) => this.#setPaths.has(prefix));
    if (conflict !== undefined) {
      throw new MongoError(this.#codeName, `Setting the path '${path}' conflicts with that of '${conflict}'`);
    }
    this.#setPaths.add(path);
    for (const prefix of prefixes) this.#prefixes.add(prefix);
  }
}

function parseUpdatePath(path: string): string[] {
  if (path.split('.').includes(''))
    throw new MongoError('EmptyFieldName', `The update path '${path}' has an empty field name`);
  return parsePath(path);
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
  const parent = findParent(document, parts, operator !== '$unset');
  if (parent === undefined) return;
  const name = parts.at(-1)!;
  if (operator === '$unset') {
    delete parent[name];
    return;
  }
  // An operator may keep or share its operand without copying it, because two documents never exist at the same time.
  const value = updateOperators[operator]!.apply(path, getField(parent, name), operand);
  if (value !== undefined) setField(parent, name, value);
}

/**
 * Returns the object that contains the last part of the path. Creates missing objects if the operator may create
 * fields.
 */
function findParent(document: Doc, parts: string[], creates: boolean): Doc | undefined {
  let parent = document;
  for (const part of parts.slice(0, -1)) {
    let next = getField(parent, part);
    if (next === undefined && creates) {
      next = {};
      setField(parent, part, next);
    }
    if (!isObject(next)) {
      if (!creates) return undefined;
      throw new MongoError(
        'PathNotViable',
        `Cannot create a field in the element '${part}', which is not an object`,
      );
    }
    parent = next;
  }
  return parent;
}

/**
 * Builds the document that an upsert starts with: the values that the filter requires, in the order of their paths, as
 * in MongoDB.
 */
export function buildUpsertSeed(filter: Doc): Doc {
  const seed: Doc = {};
  const assigned = new AssignedPaths('NotSingleValueField');
  const equalities = Object.entries(filter).map(([path, condition]) => {
    const isUnsupported = path.startsWith('$') || (isOperatorObject(condition) && !isEquality(condition));
    if (isUnsupported) throw unsupported('an upsert by anything but equality', 'BadValue');
    const parts = parseUpdatePath(path);
    assigned.add(path, parts);
    const operand = isOperatorObject(condition) ? condition.$eq : condition;
    return { operator: '$set', path, parts, operand };
  });
  equalities.sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const equality of equalities) assign(seed, equality);
  return seed;
}

const isEquality = (condition: Doc) => Object.keys(condition).join() === '$eq';
