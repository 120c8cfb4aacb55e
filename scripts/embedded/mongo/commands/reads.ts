import { Int32 } from 'bson';
import type { StoredDocument } from '../storage/collection.ts';
import type { Doc } from '../bson/document.ts';
import { encodeDocument, isObject } from '../bson/document.ts';
import { encodeAll } from '../cursors.ts';
import { MongoError, unsupported } from '../errors.ts';
import type { Query } from '../query/find.ts';
import { checkQuery, countMatching, prepareQuery } from '../query/find.ts';
import { narrowestInteger, toNumber } from '../bson/numbers.ts';
import type { Projector } from '../query/projection.ts';
import { compileProjection } from '../query/projection.ts';
import type { Command, CommandContext } from './command.ts';
import { findCollection, getCollectionName, optionalCount, optionalObject, readCursorId } from './command.ts';

export const readCommands: Record<string, Command> = {
  find: {
    fields: ['filter', 'sort', 'projection', 'skip', 'limit', 'batchSize', 'singleBatch', 'readConcern'],
    run(context) {
      const { cursors, db, body } = context;
      const query = parseFind(context, body);
      const project = compileProjection(parseProjection(body.projection));
      const batchSize = optionalCount(body.batchSize, 'batchSize');
      const found = encodeStored(select(context, query), project);
      const namespace = `${db}.${getCollectionName(context)}`;
      return cursors.open(namespace, found, { batchSize, singleBatch: body.singleBatch === true });
    },
  },

  getMore: {
    fields: ['collection', 'batchSize'],
    run({ cursors, db, body }) {
      const id = readCursorId(body.getMore);
      const batchSize = optionalCount(body.batchSize, 'batchSize');
      return cursors.getMore(id, `${db}.${String(body.collection)}`, batchSize === 0 ? undefined : batchSize);
    },
  },

  aggregate: {
    fields: ['pipeline', 'cursor', 'readConcern'],
    run(context) {
      const { cursors, db, body } = context;
      const n = countSelected(context, { ...parseCount(body.pipeline), deadlineMs: context.deadlineMs });
      const documents = n > 0 ? [{ _id: new Int32(1), n: narrowestInteger(BigInt(n)) }] : [];
      return cursors.openDocuments(`${db}.${getCollectionName(context)}`, documents);
    },
  },
};

/**
 * Rejects projections without `_id`. If an index contains all requested fields, MongoDB reads only the index, which has
 * null for missing fields. This server always reads the documents.
 */
function parseProjection(projection: unknown): Doc | undefined {
  const spec = optionalObject(projection, 'projection');
  if (spec !== undefined && Object.hasOwn(spec, '_id') && toNumber(spec._id) !== 1 && spec._id !== true)
    throw unsupported("the projection '_id: 0' of a find", 'BadValue');
  return spec;
}

/** The only supported pipeline is the one that drivers create for `countDocuments`, which may have a limit. */
const countStage = encodeDocument({ $group: { _id: new Int32(1), n: { $sum: new Int32(1) } } });

function parseCount(pipeline: unknown): Pick<Query, 'filter' | 'limit'> {
  if (!Array.isArray(pipeline)) throw new MongoError('TypeMismatch', "'pipeline' must be an array");
  const [match, ...stages] = pipeline as unknown[];
  const { $limit: limit } = isObject(stages[0]) ? stages[0] : {};
  if (limit !== undefined) stages.shift();
  const [group, ...others] = stages;
  const isCount = isObject(group) && encodeDocument(group).equals(countStage) && others.length === 0;
  const { $match: filter } = isObject(match) ? match : {};
  if (!isCount || !isObject(filter))
    throw unsupported('an aggregation other than countDocuments', 'Location40324');
  return { filter, limit: optionalCount(limit, '$limit') };
}

/** Reads the query of a `find`, including one inside an `explain`. */
export function parseFind({ deadlineMs }: Pick<CommandContext, 'deadlineMs'>, body: Doc): Query {
  return {
    filter: optionalObject(body.filter, 'filter'),
    sort: optionalObject(body.sort, 'sort'),
    skip: optionalCount(body.skip, 'skip'),
    limit: optionalCount(body.limit, 'limit'),
    deadlineMs,
  };
}

/**
 * Selects the documents of the query. Prepares the query immediately, so that an invalid one is an error even if there
 * is no collection.
 */
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
