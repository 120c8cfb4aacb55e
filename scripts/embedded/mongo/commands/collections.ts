import type { Doc } from '../bson/document.ts';
import { MongoError } from '../errors.ts';
import { compileFilter } from '../query/match.ts';
import { toNumber } from '../bson/numbers.ts';
import type { Command } from './command.ts';
import {
  ensureCollection,
  findCollection,
  getCollectionName,
  optionalCount,
  optionalObject,
} from './command.ts';

export const collectionCommands: Record<string, Command> = {
  create: {
    fields: [],
    writes: true,
    run(context) {
      if (findCollection(context) !== undefined) {
        const namespace = `${context.db}.${getCollectionName(context)}`;
        throw new MongoError('NamespaceExists', `Collection ${namespace} already exists.`);
      }
      ensureCollection(context);
      return { ok: 1 };
    },
  },

  drop: {
    fields: [],
    writes: true,
    run(context) {
      const collection = findCollection(context);
      if (collection === undefined) return { ok: 1 };
      context.store.dropCollection(collection);
      return { ns: collection.namespace, nIndexesWas: collection.indexes.length, ok: 1 };
    },
  },

  dropDatabase: {
    fields: [],
    writes: true,
    run({ store, db }) {
      for (const collection of store.collections.values())
        if (collection.db === db) store.dropCollection(collection);
      return { dropped: db, ok: 1 };
    },
  },

  listCollections: {
    fields: ['filter', 'nameOnly', 'authorizedCollections', 'cursor'],
    run({ store, cursors, db, body }) {
      const matches = compileFilter(optionalObject(body.filter, 'filter') ?? {});
      const found = [...store.collections.values()]
        .filter((collection) => collection.db === db)
        .map(({ name }): Doc => ({ name, type: 'collection', options: {}, info: { readOnly: false } }))
        .filter((entry) => matches(entry));
      const batchSize = optionalCount(optionalObject(body.cursor, 'cursor')?.batchSize, 'batchSize');
      return cursors.openOf(`${db}.$cmd.listCollections`, found, { batchSize });
    },
  },

  listDatabases: {
    fields: ['filter', 'nameOnly', 'authorizedDatabases'],
    run({ store, body }) {
      const matches = compileFilter(optionalObject(body.filter, 'filter') ?? {});
      const names = new Set(Array.from(store.collections.values(), ({ db }) => db));
      const databases = Array.from(names, (name) => ({ name, empty: false }));
      return { databases: databases.filter((entry) => matches(entry)), ok: 1 };
    },
  },

  killCursors: {
    fields: ['cursors'],
    run({ cursors, body }) {
      const ids = Array.isArray(body.cursors) ? body.cursors.map((id: unknown) => BigInt(toNumber(id))) : [];
      const { killed, notFound } = cursors.kill(ids);
      return {
        cursorsKilled: killed,
        cursorsNotFound: notFound,
        cursorsAlive: [],
        cursorsUnknown: [],
        ok: 1,
      };
    },
  },
};
