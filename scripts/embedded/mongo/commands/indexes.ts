import { areEqual } from '../bson/compare.ts';
import { parseDocument } from '../bson/document.ts';
import { MongoError, unsupported } from '../errors.ts';
import type { Collection } from '../storage/collection.ts';
import type { Index, IndexSpec } from '../storage/indexes.ts';
import { parseIndexSpec } from '../storage/indexes.ts';
import type { Command, CommandContext } from './command.ts';
import {
  ensureCollection,
  findCollection,
  getCollectionName,
  getRawDocuments,
  optionalCount,
  optionalObject,
} from './command.ts';

export const indexCommands: Record<string, Command> = {
  createIndexes: {
    fields: ['indexes', 'writeConcern'],
    writes: true,
    run(context) {
      const [raw, ...others] = getRawDocuments(context, 'indexes');
      // With several indexes, those created before a failure would have to be undone.
      if (raw === undefined || others.length > 0)
        throw unsupported('a command that does not create exactly one index');
      const spec = parseIndexSpec(parseDocument(raw));
      const createdCollectionAutomatically = findCollection(context) === undefined;
      const collection = ensureCollection(context);
      const numIndexesBefore = collection.indexes.length;
      if (!hasIndex(collection, spec)) collection.createIndex(spec);
      const numIndexesAfter = collection.indexes.length;
      return { numIndexesBefore, numIndexesAfter, createdCollectionAutomatically, ok: 1 };
    },
  },

  /** Only changes when the documents of a TTL index expire. */
  collMod: {
    fields: ['index', 'writeConcern'],
    writes: true,
    run(context) {
      const collection = requireCollection(context);
      const { keyPattern, expireAfterSeconds, ...others } = optionalObject(context.body.index, 'index') ?? {};
      const [unknown] = Object.keys(others);
      if (unknown !== undefined) throw unsupported(`the field 'collMod.index.${unknown}'`, 'Location40415');
      const index = collection.indexes.find(({ spec }) => areEqual(spec.key, keyPattern));
      if (index === undefined) throw new MongoError('IndexNotFound', 'cannot find index for ns');
      const { expireAfterSeconds: before } = index.spec;
      if (before === undefined) throw unsupported('collMod of an index that is not a TTL index');
      collection.changeExpiry(index, parseIndexSpec({ ...index.spec, expireAfterSeconds }));
      return { expireAfterSeconds_old: before, expireAfterSeconds_new: expireAfterSeconds, ok: 1 };
    },
  },

  listIndexes: {
    fields: ['cursor'],
    run(context) {
      const collection = requireCollection(context);
      const batchSize = optionalCount(optionalObject(context.body.cursor, 'cursor')?.batchSize, 'batchSize');
      const listed = collection.indexes.map(({ spec }) => ({ v: 2, ...spec }));
      return context.cursors.openDocuments(collection.namespace, listed, { batchSize });
    },
  },
};

/**
 * Returns whether the index already exists. As in MongoDB, an index with the same name or keys but other differences
 * is an error.
 */
function hasIndex({ indexes }: Collection, requested: IndexSpec): boolean {
  const isEquivalent = ({ spec }: Index) =>
    areEqual(spec.key, requested.key) &&
    spec.unique === requested.unique &&
    areEqual(spec.partialFilterExpression ?? null, requested.partialFilterExpression ?? null);
  const sameName = indexes.find(({ spec }) => spec.name === requested.name);
  if (sameName !== undefined) {
    if (areEqual(optionsOf(sameName.spec), optionsOf(requested))) return true;
    throw isEquivalent(sameName)
      ? new MongoError(
          'IndexOptionsConflict',
          `An index named ${requested.name} exists with different options`,
        )
      : new MongoError('IndexKeySpecsConflict', `Another index is named ${requested.name} already`);
  }
  const equivalent = indexes.find(isEquivalent);
  if (equivalent === undefined) return false;
  if (equivalent.spec.name === '_id_') return true;
  throw new MongoError(
    'IndexOptionsConflict',
    `Index already exists with a different name: ${equivalent.spec.name}`,
  );
}

function optionsOf({ key, unique, expireAfterSeconds, partialFilterExpression }: IndexSpec): unknown[] {
  return [key, unique === true, expireAfterSeconds, partialFilterExpression];
}

function requireCollection(context: CommandContext): Collection {
  const collection = findCollection(context);
  if (collection !== undefined) return collection;
  throw new MongoError('NamespaceNotFound', `ns does not exist: ${context.db}.${getCollectionName(context)}`);
}
