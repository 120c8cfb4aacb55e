import type { TestFn } from 'ava';
import anyTest from 'ava';
import type { Connection, mongo } from 'mongoose';
import type { TestDocument } from './mongo-fixture.ts';
import { connectToAny, makeCollection } from './mongo-fixture.ts';

/**
 * Declares a connection for the conformance tests of a file, which cover the behaviour that the product needs from any
 * MongoDB: to MONGODB_URL if it is set, otherwise to an embedded server for each test file.
 */
export function useConformanceServer(): TestFn<{ connection: Connection }> {
  const test = anyTest as TestFn<{ connection: Connection }>;
  const teardowns: (() => unknown)[] = [];
  test.before(async (t) => {
    t.context.connection = await connectToAny({ teardown: (act) => teardowns.push(act) });
  });
  test.after.always(async () => {
    for (const act of teardowns.toReversed()) await act();
  });
  return test;
}

export const collectionOf = (t: { context: { connection: Connection } }) =>
  makeCollection(t.context.connection);

export const codeOf = (error: unknown) => (error as mongo.MongoServerError).code;

export const idsOf = (documents: mongo.Document[]) => documents.map((document) => document['_id'] as unknown);

export async function idsWhere(
  collection: mongo.Collection<TestDocument>,
  filter: mongo.Document,
): Promise<unknown[]> {
  return idsOf(await collection.find(filter).sort({ _id: 1 }).toArray());
}
