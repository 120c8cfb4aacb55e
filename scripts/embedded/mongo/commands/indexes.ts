import { areEqual } from '../bson/compare.ts';
import { decodeDocument, isObject } from '../bson/document.ts';
import { MongoError } from '../errors.ts';
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
    fields: ['indexes', 'commitQuorum'],
    writes: true,
    run(context) {
      const specs = getRawDocuments(context, 'indexes').map((raw) => parseIndexSpec(decodeDocument(raw)));
      const createdCollectionAutomatically = findCollection(context) === undefined;
      const collection = ensureCollection(context);
      const numIndexesBefore = collection.indexes.length;
      for (const spec of specs) if (!hasIndex(collection, spec)) collection.createIndex(spec);
      const numIndexesAfter = collection.indexes.length;
      return { numIndexesBefore, numIndexesAfter, createdCollectionAutomatically, ok: 1 };
    },
  },

  listIndexes: {
    fields: ['cursor'],
    run(context) {
      const collection = requireCollection(context);
      const batchSize = optionalCount(optionalObject(context.body.cursor, 'cursor')?.batchSize, 'batchSize');
      const listed = collection.indexes.map(({ spec }) => ({ v: 2, ...spec }));
      return context.cursors.openOf(collection.namespace, listed, { batchSize });
    },
  },

  dropIndexes: {
    fields: ['index'],
    writes: true,
    run(context) {
      const collection = requireCollection(context);
      const nIndexesWas = collection.indexes.length;
      const { index: wanted } = context.body;
      const dropped =
        wanted === '*'
          ? collection.indexes.slice(1)
          : (Array.isArray(wanted) ? wanted : [wanted]).map((one: unknown) => requireIndex(collection, one));
      for (const index of dropped) collection.dropIndex(index);
      return { nIndexesWas, ok: 1 };
    },
  },
};

/** Is the index there already? One of the same name or keys that differs otherwise is an error, as in MongoDB. */
function hasIndex({ indexes }: Collection, wanted: IndexSpec): boolean {
  const isSameKey = ({ spec }: Index) =>
    areEqual(spec.key, wanted.key) &&
    areEqual(spec.partialFilterExpression ?? null, wanted.partialFilterExpression ?? null);
  const named = indexes.find(({ spec }) => spec.name === wanted.name);
  if (named !== undefined) {
    if (areEqual(optionsOf(named.spec), optionsOf(wanted))) return true;
    throw areEqual(named.spec.key, wanted.key)
      ? new MongoError('IndexOptionsConflict', `An index named ${wanted.name} exists with different options`)
      : new MongoError('IndexKeySpecsConflict', `An index named ${wanted.name} exists with different keys`);
  }
  const alike = indexes.find(isSameKey);
  if (alike === undefined) return false;
  if (alike.spec.name === '_id_') return true;
  throw new MongoError(
    'IndexOptionsConflict',
    `Index already exists with a different name: ${alike.spec.name}`,
  );
}

function optionsOf({
  key,
  unique,
  sparse,
  expireAfterSeconds,
  partialFilterExpression,
}: IndexSpec): unknown[] {
  return [key, unique === true, sparse === true, expireAfterSeconds, partialFilterExpression];
}

function requireCollection(context: CommandContext): Collection {
  const collection = findCollection(context);
  if (collection !== undefined) return collection;
  throw new MongoError('NamespaceNotFound', `ns does not exist: ${context.db}.${getCollectionName(context)}`);
}

function requireIndex({ indexes }: Collection, wanted: unknown): Index {
  const index = indexes.find(({ spec }) =>
    isObject(wanted) ? areEqual(spec.key, wanted) : spec.name === wanted,
  );
  if (index === undefined) {
    const shown = isObject(wanted) ? JSON.stringify(wanted) : String(wanted);
    throw new MongoError('IndexNotFound', `index not found with name [${shown}]`);
  }
  if (index.spec.name === '_id_') throw new MongoError('InvalidOptions', 'cannot drop _id index');
  return index;
}
