import { Int32 } from 'bson';
import type { StoredDocument } from '../storage/collection.ts';
import type { Doc } from '../bson/document.ts';
import { encodeDocument, isObject } from '../bson/document.ts';
import { encodeAll } from '../cursors.ts';
import { MongoError, unsupported } from '../errors.ts';
import type { Query } from '../query/find.ts';
import { checkQuery, countMatching, prepareQuery } from '../query/find.ts';
import { Sums } from '../query/sums.ts';
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
      const { group, ...stages } = parsePipeline(body.pipeline);
      const query = { ...stages, deadlineMs: context.deadlineMs };
      const documents = isCount(group)
        ? toCountDocuments(countSelected(context, query))
        : new Sums(group).compute(documentsOf(select(context, query)));
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

/** As drivers create it for `countDocuments`. Counts are read from an index if they can be. */
const countGroup = encodeDocument({ _id: new Int32(1), n: { $sum: new Int32(1) } });
const isCount = (group: Doc): boolean => encodeDocument(group).equals(countGroup);

const toCountDocuments = (n: number): Doc[] =>
  n > 0 ? [{ _id: new Int32(1), n: narrowestInteger(BigInt(n)) }] : [];

/** The only supported pipeline is `$match`, then possibly `$sort` and `$limit`, then `$group`. */
function parsePipeline(
  pipeline: unknown,
): Pick<Query, 'filter' | 'sort' | 'limit'> & { readonly group: Doc } {
  if (!Array.isArray(pipeline)) throw new MongoError('TypeMismatch', "'pipeline' must be an array");
  const stages = [...(pipeline as unknown[])];
  const take = (name: string): unknown => {
    const [stage] = stages;
    if (!isObject(stage) || Object.keys(stage).join() !== name) return undefined;
    stages.shift();
    return stage[name];
  };
  const filter = take('$match');
  const sort = optionalObject(take('$sort'), '$sort');
  const limit = optionalCount(take('$limit'), '$limit');
  const group = take('$group');
  if (!isObject(filter) || !isObject(group) || stages.length > 0)
    throw unsupported('an aggregation other than sums', 'Location40324');
  return { filter, sort, limit, group };
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

function* documentsOf(found: Iterable<StoredDocument>): Generator<Doc> {
  for (const { document } of found) yield document;
}
