import { compilePipeline } from '../aggregation/aggregate.ts';
import { encodeKey } from '../bson/compare.ts';
import type { StoredDocument } from '../storage/collection.ts';
import { emptyArray } from '../bson/bson-types.ts';
import type { Doc } from '../bson/document.ts';
import { encodeAll } from '../cursors.ts';
import { MongoError, refuse } from '../errors.ts';
import type { Query } from '../query/find.ts';
import { checkQuery, countMatching, prepareQuery } from '../query/find.ts';
import { narrowestInteger, toBigInt, toNumber } from '../bson/numbers.ts';
import type { Long } from 'bson';
import { collectAt } from '../bson/paths.ts';
import type { Projector } from '../query/projection.ts';
import { compileProjection } from '../query/projection.ts';
import type { Command, CommandContext } from './command.ts';
import { findCollection, getCollectionName, optionalCount, optionalObject } from './command.ts';

export const readCommands: Record<string, Command> = {
  find: {
    fields: [
      'filter',
      'sort',
      'projection',
      'skip',
      'limit',
      'hint',
      'batchSize',
      'singleBatch',
      'allowDiskUse',
      'noCursorTimeout',
      'allowPartialResults',
    ],
    run(context) {
      const { cursors, db, body } = context;
      const query = parseFind(context, body);
      const project = compileProjection(optionalObject(body.projection, 'projection'));
      const batchSize = optionalCount(body.batchSize, 'batchSize');
      const found = encodeStored(select(context, query), project);
      const namespace = `${db}.${getCollectionName(context)}`;
      return cursors.open(namespace, found, { batchSize, singleBatch: body.singleBatch === true });
    },
  },

  getMore: {
    fields: ['collection', 'batchSize'],
    run({ cursors, db, body }) {
      const id = toBigInt(body.getMore as Long);
      const batchSize = optionalCount(body.batchSize, 'batchSize');
      return cursors.getMore(id, `${db}.${String(body.collection)}`, batchSize === 0 ? undefined : batchSize);
    },
  },

  count: {
    fields: ['query', 'skip', 'limit', 'hint'],
    run(context) {
      const query = parseCount(context, context.body);
      return { n: countSelected(context, query), ok: 1 };
    },
  },

  distinct: {
    fields: ['key', 'query', 'hint'],
    run(context) {
      const { key } = context.body;
      if (typeof key !== 'string' || key === '')
        throw new MongoError('TypeMismatch', "'key' must be a string");
      const values = new Map<string, unknown>();
      for (const { document } of select(context, parseDistinct(context, context.body))) {
        for (const value of collectAt(document, key.split('.')).values) {
          if (value !== undefined && value !== emptyArray)
            values.set(encodeKey(value).toString('latin1'), value);
        }
      }
      return { values: [...values.values()], ok: 1 };
    },
  },

  aggregate: {
    fields: ['pipeline', 'cursor', 'hint', 'allowDiskUse'],
    run(context) {
      const { cursors, db, body } = context;
      if (typeof body.aggregate !== 'string') throw refuse('an aggregation without a collection');
      const { stages, count, ...pipeline } = compilePipeline(body.pipeline);
      const query = { ...pipeline.query, hint: body.hint, deadlineMs: context.deadlineMs };
      const batchSize = optionalCount(optionalObject(body.cursor, 'cursor')?.batchSize, 'batchSize');
      const namespace = `${db}.${getCollectionName(context)}`;
      if (count !== undefined) {
        const n = narrowestInteger(BigInt(countSelected(context, query)));
        return cursors.openOf(namespace, toNumber(n) > 0 ? [{ _id: count.id, [count.field]: n }] : []);
      }
      const found = select(context, query);
      if (stages.length === 0) return cursors.open(namespace, encodeStored(found, undefined), { batchSize });
      const results = stages.reduce<Iterable<Doc>>(
        (documents, stage) => stage(documents),
        decodeStored(found),
      );
      return cursors.open(namespace, encodeAll(results), { batchSize });
    },
  },
};

type Parts = Pick<CommandContext, 'deadlineMs'>;

/** The query of a `find`; also of one that is explained. */
export function parseFind({ deadlineMs }: Parts, body: Doc): Query {
  return {
    filter: optionalObject(body.filter, 'filter'),
    sort: optionalObject(body.sort, 'sort'),
    skip: optionalCount(body.skip, 'skip'),
    limit: optionalCount(body.limit, 'limit'),
    hint: body.hint,
    deadlineMs,
  };
}

export function parseCount({ deadlineMs }: Parts, body: Doc): Query {
  return {
    filter: optionalObject(body.query, 'query'),
    skip: optionalCount(body.skip, 'skip'),
    limit: optionalCount(body.limit, 'limit'),
    hint: body.hint,
    deadlineMs,
  };
}

export function parseDistinct({ deadlineMs }: Parts, body: Doc): Query {
  return { filter: optionalObject(body.query, 'query'), hint: body.hint, deadlineMs };
}

/** The documents of the query. It is prepared at once, so that a bad one is an error without a collection too. */
function select(context: CommandContext, query: Query): Iterable<StoredDocument> {
  const collection = findCollection(context);
  if (collection !== undefined) return prepareQuery(collection, query).run();
  checkQuery(query);
  return [];
}

function countSelected(context: CommandContext, query: Query): number {
  const collection = findCollection(context);
  if (collection !== undefined) return countMatching(collection, query);
  checkQuery(query);
  return 0;
}

function* encodeStored(found: Iterable<StoredDocument>, project: Projector | undefined): Generator<Buffer> {
  if (project === undefined) for (const { raw } of found) yield raw;
  else for (const { document } of found) yield* encodeAll([project(document)]);
}

function* decodeStored(found: Iterable<StoredDocument>): Generator<Doc> {
  for (const { document } of found) yield document;
}
