import { Long } from 'bson';
import type { Authentication } from '../auth/authentication.ts';
import type { Collection } from '../storage/collection.ts';
import type { Cursors } from '../cursors.ts';
import type { Doc } from '../bson/document.ts';
import { encodeDocument, isObject } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';
import type { RetryableStatements } from '../retryable-writes.ts';
import type { ServerStatus } from '../server-status.ts';
import type { Store } from '../storage/store.ts';

/** Everything a command can use. */
export type CommandContext = {
  store: Store;
  cursors: Cursors;
  status: ServerStatus;
  /** The state of the connection that sent the command. */
  authentication: Authentication;
  db: string;
  /** The command's name as the client wrote it, which is also the field with the collection's name. */
  name: string;
  body: Doc;
  sequences: Map<string, Buffer[]>;
  deadlineMs: number | undefined;
  /** Only for commands that write. */
  statements?: RetryableStatements;
};

/**
 * `fields` lists the supported fields besides the command's name. Any other field is rejected. A command that `writes`
 * runs inside a transaction of the store, so it must not await anything.
 */
export type Command = {
  fields: string[];
  writes?: boolean;
  /** Allowed before the client has authenticated. */
  isOpen?: boolean;
  run(context: CommandContext): Doc | Buffer;
};

const commonFields = new Set(['$db', '$readPreference', 'lsid', 'maxTimeMS']);

export function checkFields(
  name: string,
  command: Command,
  body: Doc,
  sequences: Map<string, Buffer[]>,
): void {
  for (const field of [...Object.keys(body).slice(1), ...sequences.keys()]) {
    if (command.fields.includes(field) || commonFields.has(field) || body[field] === null) continue;
    throw unsupported(`the field '${name}.${field}'`, 'Location40415');
  }
  checkReadConcern(optionalObject(body.readConcern, 'readConcern') ?? {});
  checkWriteConcern(optionalObject(body.writeConcern, 'writeConcern') ?? {}, command.writes === true);
}

/** A single node that acknowledges only what is on its disk returns the same for all of these levels. */
function checkReadConcern(readConcern: Doc): void {
  checkPart(readConcern, 'readConcern', ['level']);
  const { level = 'local' } = readConcern;
  if (typeof level !== 'string' || !['local', 'majority', 'linearizable'].includes(level))
    throw unsupported(`the read concern ${JSON.stringify(level)}`);
}

/** A single node is a majority by itself, and every acknowledged write is on its disk, so `j` changes nothing. */
function checkWriteConcern(writeConcern: Doc, writes: boolean): void {
  checkPart(writeConcern, 'writeConcern', ['w', 'j', 'wtimeout']);
  const { w = 'majority', j = true, wtimeout } = writeConcern;
  // Drivers end their sessions with `w: 0`. For a write, it would mean that MongoDB reports no result.
  const isSupported = w === 'majority' || toNumber(w) === 1 || (!writes && toNumber(w) === 0);
  if (!isSupported) throw unsupported(`the write concern ${JSON.stringify(w)}`);
  if (typeof j !== 'boolean') throw new MongoError('TypeMismatch', "'writeConcern.j' must be a boolean");
  optionalCount(wtimeout, 'writeConcern.wtimeout');
}

/** Rejects unknown fields in a part of a command, such as one of several updates. */
export function checkPart(part: Doc, path: string, known: string[]): void {
  const unknown = Object.keys(part).find((field) => !known.includes(field));
  if (unknown !== undefined) throw unsupported(`the field '${path}.${unknown}'`, 'Location40415');
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
  if (!isNumber(value)) throw new MongoError('TypeMismatch', `'${name}' must be a number`);
  if (!Number.isInteger(count)) throw unsupported(`the fraction ${count} as '${name}'`, 'BadValue');
  if (count < 0) throw new MongoError('Location51024', `'${name}' must not be negative`);
  return count;
}

/** Returns an array of documents, which clients may send in the body or next to it. */
export function getRawDocuments({ body, sequences }: CommandContext, field: string): Buffer[] {
  const raw = sequences.get(field);
  if (raw !== undefined) return raw;
  const documents = body[field];
  if (!Array.isArray(documents) || !documents.every((document) => isObject(document))) {
    throw new MongoError('TypeMismatch', `'${field}' must be an array of objects`);
  }
  return documents.map((document: Doc) => encodeDocument(document));
}

export function readCursorId(id: unknown): bigint {
  if (id instanceof Long) return id.toBigInt();
  throw new MongoError('TypeMismatch', 'the cursor id must be an int64');
}
