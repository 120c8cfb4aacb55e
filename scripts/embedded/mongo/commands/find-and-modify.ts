import { MongoError } from '../errors.ts';
import { getId } from '../bson/document.ts';
import { checkQuery, findDocuments } from '../query/find.ts';
import { compileProjection } from '../query/projection.ts';
import { compileUpdate } from '../update/update.ts';
import type { Command } from './command.ts';
import { ensureCollection, findCollection, optionalObject } from './command.ts';
import { updateStored, upsertDocument } from './writes.ts';

/** One document found, changed (or removed, or made) and returned in one step. */
export const findAndModify: Command = {
  fields: [
    'query',
    'sort',
    'remove',
    'update',
    'new',
    'fields',
    'upsert',
    'hint',
    'bypassDocumentValidation',
  ],
  writes: true,
  run(context) {
    const { body } = context;
    const filter = optionalObject(body.query, 'query') ?? {};
    const query = {
      filter,
      sort: optionalObject(body.sort, 'sort'),
      limit: 1,
      hint: body.hint,
      deadlineMs: context.deadlineMs,
    };
    const project = compileProjection(optionalObject(body.fields, 'fields')) ?? ((document) => document);
    const isRemoval = body.remove === true;
    if (
      isRemoval === (body.update !== undefined) ||
      (isRemoval && (body.new === true || body.upsert === true))
    ) {
      throw new MongoError(
        'FailedToParse',
        'either an update or remove=true must be specified, and not both',
      );
    }
    const update = isRemoval ? undefined : compileUpdate(body.update);
    checkQuery(query);
    const collection = findCollection(context);
    const [stored] = collection === undefined ? [] : Array.from(findDocuments(collection, query));

    if (stored !== undefined && update === undefined) {
      collection!.remove(stored);
      return { lastErrorObject: { n: 1 }, value: project(stored.document), ok: 1 };
    }
    if (stored !== undefined && update !== undefined) {
      const { document } = updateStored(collection!, stored, update);
      const value = project(body.new === true ? document : stored.document);
      return { lastErrorObject: { n: 1, updatedExisting: true }, value, ok: 1 };
    }
    if (update === undefined) return { lastErrorObject: { n: 0 }, value: null, ok: 1 };
    if (body.upsert !== true)
      return { lastErrorObject: { n: 0, updatedExisting: false }, value: null, ok: 1 };
    const document = upsertDocument(ensureCollection(context), filter, update);
    const lastErrorObject = { n: 1, updatedExisting: false, upserted: getId(document) };
    return { lastErrorObject, value: body.new === true ? project(document) : null, ok: 1 };
  },
};
