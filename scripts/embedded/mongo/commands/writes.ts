import { ObjectId } from 'bson';
import type { Collection, StoredDocument } from '../storage/collection.ts';
import type { Doc } from '../bson/document.ts';
import { decodeDocument, encodeDocument, getId, parseDocument } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import { checkQuery, findDocuments } from '../query/find.ts';
import { toNumber } from '../bson/numbers.ts';
import type { Updater } from '../update/update.ts';
import { buildUpsertSeed, compileUpdate } from '../update/update.ts';
import type { Command, CommandContext } from './command.ts';
import { checkPart, ensureCollection, findCollection, getRawDocuments, optionalObject } from './command.ts';

/** Fields of commands that drivers may retry. */
export const writeFields = ['writeConcern', 'txnNumber'];

export const writeCommands: Record<string, Command> = {
  insert: {
    fields: ['documents', 'ordered', ...writeFields],
    writes: true,
    run(context) {
      const documents = getRawDocuments(context, 'documents');
      const collection = ensureCollection(context);
      let n = 0;
      const writeErrors = runEach(documents, context.body.ordered, (raw, index) => {
        context.statements!.once(index, () => {
          insertDocument(collection, parseDocument(raw), raw);
          return {};
        });
        n += 1;
      });
      return { n, ...(writeErrors.length > 0 && { writeErrors }), ok: 1 };
    },
  },

  update: {
    fields: ['updates', 'ordered', ...writeFields],
    writes: true,
    run(context) {
      const upserted: Doc[] = [];
      let n = 0;
      let nModified = 0;
      const updates = getRawDocuments(context, 'updates');
      const writeErrors = runEach(updates, context.body.ordered, (raw, index) => {
        const { result } = context.statements!.once(index, () => runUpdate(context, parseDocument(raw)));
        n += toNumber(result.matched);
        nModified += toNumber(result.modified);
        if (result.upsertedId !== undefined) upserted.push({ index, _id: result.upsertedId });
      });
      const parts = {
        ...(upserted.length > 0 && { upserted }),
        ...(writeErrors.length > 0 && { writeErrors }),
      };
      return { n, nModified, ...parts, ok: 1 };
    },
  },

  delete: {
    fields: ['deletes', 'ordered', ...writeFields],
    writes: true,
    run(context) {
      const deletes = getRawDocuments(context, 'deletes');
      let n = 0;
      const writeErrors = runEach(deletes, context.body.ordered, (raw, index) => {
        const { result } = context.statements!.once(index, () => runDelete(context, parseDocument(raw)));
        n += toNumber(result.n);
      });
      return { n, ...(writeErrors.length > 0 && { writeErrors }), ok: 1 };
    },
  },
};

/** As MongoDB does, allows retries only for statements that change at most one document. */
function checkRetryable({ body }: CommandContext, isSingle: boolean): void {
  if (!isSingle && body.txnNumber !== undefined)
    throw unsupported('a retryable write of many documents', 'InvalidOptions');
}

/** Runs the statements of a command. If they are ordered, stops at the first error. */
function runEach(statements: Buffer[], ordered: unknown, run: (raw: Buffer, index: number) => void): Doc[] {
  const writeErrors: Doc[] = [];
  for (const [index, raw] of statements.entries()) {
    try {
      run(raw, index);
    } catch (error) {
      if (!(error instanceof MongoError)) throw error;
      writeErrors.push({ index, code: error.code, errmsg: error.message, ...error.details });
      if (ordered !== false) break;
    }
  }
  return writeErrors;
}

function runDelete(context: CommandContext, statement: Doc): { n: number } {
  checkPart(statement, 'delete.deletes', ['q', 'limit']);
  const limit = toNumber(statement.limit);
  checkRetryable(context, limit === 1);
  const query = { filter: optionalObject(statement.q, 'q'), limit, deadlineMs: context.deadlineMs };
  checkQuery(query);
  const collection = findCollection(context);
  if (collection === undefined) return { n: 0 };
  // Find all documents before removing the first, because removing changes the data that is being read.
  const found = Array.from(findDocuments(collection, query));
  for (const stored of found) collection.remove(stored);
  return { n: found.length };
}

function runUpdate(
  context: CommandContext,
  statement: Doc,
): { matched: number; modified: number; upsertedId?: unknown } {
  checkPart(statement, 'update.updates', ['q', 'u', 'multi', 'upsert']);
  const { u, multi, upsert } = statement;
  checkRetryable(context, multi !== true);
  const filter = optionalObject(statement.q, 'q') ?? {};
  const update = compileUpdate(u);
  const query = { filter, limit: multi === true ? 0 : 1, deadlineMs: context.deadlineMs };
  checkQuery(query);
  const collection = findCollection(context);
  const found = collection === undefined ? [] : Array.from(findDocuments(collection, query));
  if (found.length === 0 && upsert === true) {
    const document = upsertDocument(ensureCollection(context), filter, update);
    return { matched: 1, modified: 0, upsertedId: getId(document) };
  }
  let modified = 0;
  for (const stored of found) if (updateStored(collection!, stored, update).isModified) modified += 1;
  return { matched: found.length, modified };
}

export function updateStored(
  collection: Collection,
  stored: StoredDocument,
  update: Updater,
): { document: Doc; isModified: boolean } {
  const document = update(decodeDocument(stored.raw), false);
  return { document, isModified: collection.replace(stored, document) };
}

/** Inserts the document that the filter and the update produce. */
function upsertDocument(collection: Collection, filter: Doc, update: Updater): Doc {
  const document = update(buildUpsertSeed(filter), true);
  return insertDocument(collection, document, undefined);
}

/** @returns the document as stored, with `_id` first, generated here if the client sent none */
function insertDocument(collection: Collection, document: Doc, raw: Buffer | undefined): Doc {
  if (Array.isArray(getId(document)))
    throw new MongoError('InvalidIdField', "The '_id' value cannot be an array");
  if (raw !== undefined && Object.keys(document)[0] === '_id') {
    collection.insert(document, raw);
    return document;
  }
  const { _id = new ObjectId(), ...fields } = document;
  const ordered = { _id, ...fields };
  collection.insert(ordered, encodeDocument(ordered));
  return ordered;
}
