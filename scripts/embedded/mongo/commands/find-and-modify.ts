import { isObject } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { checkQuery, findDocuments } from '../query/find.ts';
import { compileProjection } from '../query/projection.ts';
import { compileUpdate } from '../update/update.ts';
import type { Command } from './command.ts';
import { findCollection, optionalObject } from './command.ts';
import { updateStored, writeFields } from './writes.ts';

/** One document found, changed or removed, and returned in one step. */
export const findAndModify: Command = {
  fields: ['query', 'remove', 'update', 'new', 'fields', 'upsert', ...writeFields],
  writes: true,
  run(context) {
    const { body } = context;
    const filter = optionalObject(body.query, 'query') ?? {};
    const query = { filter, limit: 1, deadlineMs: context.deadlineMs };
    compileProjection(optionalObject(body.fields, 'fields'));
    const isRemoval = body.remove === true;
    if (isRemoval === (body.update !== undefined) || (isRemoval && body.new === true)) {
      throw new MongoError(
        'FailedToParse',
        'either an update or remove=true must be specified, and not both',
      );
    }
    if (body.upsert === true) throw refuse('findAndModify with upsert');
    const update = isRemoval ? undefined : compileUpdate(body.update);
    checkQuery(query);
    const collection = findCollection(context);
    const [stored] = collection === undefined ? [] : Array.from(findDocuments(collection, query));

    if (stored !== undefined && update === undefined) {
      collection!.remove(stored);
      return { lastErrorObject: { n: 1 }, value: stored.document, ok: 1 };
    }
    if (stored !== undefined && update !== undefined) {
      const { document } = updateStored(collection!, stored, update);
      const value = body.new === true ? document : stored.document;
      return { lastErrorObject: { n: 1, updatedExisting: true }, value, ok: 1 };
    }
    if (update === undefined) return { lastErrorObject: { n: 0 }, value: null, ok: 1 };
    return { lastErrorObject: { n: 0, updatedExisting: false }, value: null, ok: 1 };
  },
  present({ body }, reply) {
    const project = compileProjection(optionalObject(body.fields, 'fields'));
    return project !== undefined && isObject(reply.value) ? { ...reply, value: project(reply.value) } : reply;
  },
};
