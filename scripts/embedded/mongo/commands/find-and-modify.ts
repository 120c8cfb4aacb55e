import type { Doc } from '../bson/document.ts';
import { isObject } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import type { Query } from '../query/find.ts';
import { checkQuery, findDocuments } from '../query/find.ts';
import { compileProjection } from '../query/projection.ts';
import type { Updater } from '../update/update.ts';
import { compileUpdate } from '../update/update.ts';
import type { Command, CommandContext } from './command.ts';
import { findCollection, optionalObject } from './command.ts';
import { updateStored, writeFields } from './writes.ts';

/** Finds one document, changes or removes it, and returns it, atomically. */
export const findAndModify: Command = {
  fields: ['query', 'remove', 'update', 'new', 'fields', 'upsert', ...writeFields],
  writes: true,
  run(context) {
    const { body } = context;
    const filter = optionalObject(body.query, 'query') ?? {};
    const query = { filter, limit: 1, deadlineMs: context.deadlineMs };
    const project = compileProjection(optionalObject(body.fields, 'fields'));
    const isRemoval = body.remove === true;
    if (isRemoval === (body.update !== undefined) || (isRemoval && body.new === true)) {
      throw new MongoError(
        'FailedToParse',
        'either an update or remove=true must be specified, but not both',
      );
    }
    if (body.upsert === true) throw unsupported('findAndModify with upsert');
    const update = isRemoval ? undefined : compileUpdate(body.update);
    checkQuery(query);
    const { result, isRepeated } = context.statements!.once(0, () => changeOne(context, query, update));
    // For a repeated command, MongoDB returns the whole document: it does not apply the projection.
    if (project === undefined || isRepeated || !isObject(result.value)) return result;
    return { ...result, value: project(result.value) };
  },
};

/** @param update undefined removes the document */
function changeOne(context: CommandContext, query: Query, update: Updater | undefined): Doc {
  const collection = findCollection(context);
  const [stored] = collection === undefined ? [] : Array.from(findDocuments(collection, query));
  const updateFields = update && { updatedExisting: stored !== undefined };
  if (collection === undefined || stored === undefined)
    return { lastErrorObject: { n: 0, ...updateFields }, value: null, ok: 1 };
  let value = stored.document;
  if (update === undefined) collection.remove(stored);
  else {
    const { document } = updateStored(collection, stored, update);
    if (context.body.new === true) value = document;
  }
  return { lastErrorObject: { n: 1, ...updateFields }, value, ok: 1 };
}
