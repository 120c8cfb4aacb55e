import type { Doc } from '../bson/document.ts';
import { compileFilter } from '../query/match.ts';
import type { Command } from './command.ts';
import { optionalCount, optionalObject, readCursorId } from './command.ts';

export const collectionCommands: Record<string, Command> = {
  dropDatabase: {
    fields: ['writeConcern'],
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
      return cursors.openDocuments(`${db}.$cmd.listCollections`, found, { batchSize });
    },
  },

  killCursors: {
    fields: ['cursors'],
    run({ cursors, body }) {
      const ids = Array.isArray(body.cursors) ? body.cursors.map(readCursorId) : [];
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
