import type { Collection, StoredDocument } from '../storage/collection.ts';
import type { Doc } from '../bson/document.ts';
import { MongoError } from '../errors.ts';
import { compileFilter } from './match.ts';
import type { Plan } from './plan.ts';
import { choosePlan } from './plan.ts';
import { parseSort, sortDocuments } from './sort.ts';

export type Query = {
  filter?: Doc | undefined;
  sort?: Doc | undefined;
  skip?: number | undefined;
  /** 0 means no limit. */
  limit?: number | undefined;
  /** Deadline for examining documents, compared with `performance.now()`. */
  deadlineMs?: number | undefined;
};

/** A checked query and its plan. */
export type PreparedQuery = {
  plan: Plan | undefined;
  /** Whether the documents must be read and sorted before the first can be returned. */
  mustSort: boolean;
  stats: { keysExamined: number; docsExamined: number; returned: number };
  run: () => Generator<StoredDocument>;
};

/** Throws the error of an invalid query, even if there is no collection to query. */
export function checkQuery({ filter, sort }: Query): void {
  compileFilter(filter ?? {});
  parseSort(sort ?? {});
}

export function findDocuments(collection: Collection, query: Query): Generator<StoredDocument> {
  return prepareQuery(collection, query).run();
}

export function prepareQuery(collection: Collection, query: Query): PreparedQuery {
  const filter = query.filter ?? {};
  const matches = Object.keys(filter).length === 0 ? undefined : compileFilter(filter);
  const sort = parseSort(query.sort ?? {});
  const plan = choosePlan(collection.indexes, filter, sort);
  const mustSort = sort.length > 0 && plan?.isSorted !== true;
  const isExact = matches === undefined || plan?.isExact === true;
  const stats = { keysExamined: 0, docsExamined: 0, returned: 0 };

  function* selectMatching(): Generator<StoredDocument> {
    for (const stored of plan === undefined ? collection.scan() : readByIndex(collection, plan, stats)) {
      stats.docsExamined += 1;
      if (query.deadlineMs !== undefined && performance.now() > query.deadlineMs) {
        throw new MongoError('MaxTimeMSExpired', 'operation exceeded time limit');
      }
      if (isExact || matches(stored.document)) yield stored;
    }
  }

  function* run(): Generator<StoredDocument> {
    const found = mustSort
      ? sortDocuments(selectMatching(), sort, ({ document }) => document)
      : selectMatching();
    let toSkip = query.skip ?? 0;
    for (const stored of found) {
      if (toSkip > 0) {
        toSkip -= 1;
        continue;
      }
      stats.returned += 1;
      yield stored;
      if (stats.returned === query.limit) return;
    }
  }
  return { plan, mustSort, stats, run };
}

/** Counts the documents that the query selects. Uses only the index if that is exact. */
export function countMatching(collection: Collection, query: Query): number {
  const { plan, run } = prepareQuery(collection, query);
  const isAll = Object.keys(query.filter ?? {}).length === 0;
  const max = query.limit ?? Infinity;
  if (isAll) return Math.min(max, collection.countDocuments());
  if (plan?.isExact !== true) {
    let count = 0;
    for (const _ of run()) count += 1;
    return count;
  }
  return Math.min(
    max,
    plan.ranges.reduce((count, range) => count + collection.countEntries(range), 0),
  );
}

function* readByIndex(
  collection: Collection,
  { ranges, isReverse }: Plan,
  stats: PreparedQuery['stats'],
): Generator<StoredDocument> {
  for (const range of ranges) {
    for (const recordId of collection.scanEntries(range, isReverse)) {
      stats.keysExamined += 1;
      const stored = collection.read(recordId);
      if (stored !== undefined) yield stored;
    }
  }
}
