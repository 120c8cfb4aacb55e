import type { Authentication } from '../auth/authentication.ts';
import type { Collection } from '../storage/collection.ts';
import type { Cursors } from '../cursors.ts';
import type { Doc } from '../bson/document.ts';
import { encodeDocument, isObject } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';
import type { ServerStatus } from '../server-status.ts';
import type { Store } from '../storage/store.ts';

/** What a command works on. */
export type CommandContext = {
  store: Store;
  cursors: Cursors;
  status: ServerStatus;
  /** Of the connection that the command came by. */
  authentication: Authentication;
  db: string;
  /** The command's name as the client wrote it, which is also the field that names the collection. */
  name: string;
  body: Doc;
  sequences: Map<string, Buffer[]>;
  deadlineMs: number | undefined;
};

/**
 * `fields` are all that the command understands besides its name; any other is refused.
 * A command that `writes` runs inside a transaction of the store, and so without awaiting anything.
 */
export type Command = {
  fields: string[];
  writes?: boolean;
  /** Answered before the client has authenticated too. */
  isOpen?: boolean;
  run(context: CommandContext): Doc | Buffer;
};

const commonFields = new Set([
  '$db',
  '$clusterTime',
  '$readPreference',
  'lsid',
  'txnNumber',
  'stmtId',
  'stmtIds',
  'readConcern',
  'writeConcern',
  'maxTimeMS',
  'comment',
]);

export function checkFields(
  name: string,
  command: Command,
  body: Doc,
  sequences: Map<string, Buffer[]>,
): void {
  for (const field of [...Object.keys(body).slice(1), ...sequences.keys()]) {
    if (command.fields.includes(field) || commonFields.has(field) || body[field] === null) continue;
    const isSimpleCollation =
      field === 'collation' && isObject(body[field]) && body[field].locale === 'simple';
    if (!isSimpleCollation) throw refuse(`the field '${name}.${field}'`, 'Location40415');
  }
  const { readConcern, writeConcern } = body;
  if (
    isObject(readConcern) &&
    !['local', 'majority', 'available', 'linearizable', undefined].includes(readConcern.level as string)
  ) {
    throw refuse(`read concern ${String(readConcern.level)}`);
  }
  // One node is a majority of itself, and every acknowledged write is on its disk: `j` asks for nothing more.
  const w = isObject(writeConcern) ? writeConcern.w : undefined;
  if (w !== undefined && w !== 'majority' && !(toNumber(w) <= 1))
    throw refuse('a write concern for more than one node');
}

/** Refuses the fields of a part of a command (one update of many, say) that nobody here reads. */
export function checkPart(part: Doc, what: string, known: string[]): void {
  const unknown = Object.keys(part).find((field) => !known.includes(field));
  if (unknown !== undefined) throw refuse(`the field '${what}.${unknown}'`, 'Location40415');
}

export function getCollectionName({ db, name, body }: CommandContext): string {
  const collection = body[name];
  const isValid = typeof collection === 'string' && collection !== '' && !/[\0$]/.test(collection);
  if (!isValid)
    throw new MongoError('InvalidNamespace', `Invalid collection name '${db}.${String(collection)}'`);
  return collection;
}

export function findCollection(context: CommandContext): Collection | undefined {
  return context.store.findCollection(context.db, getCollectionName(context));
}

export function ensureCollection(context: CommandContext): Collection {
  return context.store.ensureCollection(context.db, getCollectionName(context));
}

export function optionalObject(value: unknown, name: string): Doc | undefined {
  if (value === undefined || value === null) return undefined;
  if (isObject(value)) return value;
  throw new MongoError('TypeMismatch', `'${name}' must be an object`);
}

export function optionalCount(value: unknown, name: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  const count = toNumber(value);
  if (isNumber(value) && Number.isInteger(count) && count >= 0) return count;
  throw new MongoError('BadValue', `'${name}' must be a whole number that is not negative`);
}

/** An array of documents that a client may send in the body or beside it. */
export function getRawDocuments({ body, sequences }: CommandContext, field: string): Buffer[] {
  const raw = sequences.get(field);
  if (raw !== undefined) return raw;
  const documents = body[field];
  if (!Array.isArray(documents) || !documents.every((document) => isObject(document))) {
    throw new MongoError('TypeMismatch', `'${field}' must be an array of objects`);
  }
  return documents.map((document: Doc) => encodeDocument(document));
}
