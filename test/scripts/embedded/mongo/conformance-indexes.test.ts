import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { codeOf, collectionOf, useConformanceServer } from './conformance-context.ts';

const test = useConformanceServer();

const { Long } = mongoose.mongo.BSON;

/** The stages of the winning plan, outermost first. */
async function explainStages(cursor: mongo.FindCursor): Promise<string[]> {
  const { queryPlanner } = (await cursor.explain('queryPlanner')) as { queryPlanner: { winningPlan: Stage } };
  const stages: string[] = [];
  for (let stage: Stage | undefined = queryPlanner.winningPlan; stage; stage = stage.inputStage)
    stages.push(stage.stage);
  return stages;
}

type Stage = { stage: string; inputStage?: Stage };

test('a unique index rejects a duplicate key with 11000 and identifies it', async (t) => {
  const accounts = collectionOf(t);
  await accounts.createIndex({ email: 1 }, { unique: true });
  await accounts.insertOne({ email: 'a' });
  const error = await t.throwsAsync(accounts.insertOne({ email: 'a' }));
  const { code, keyPattern, keyValue } = error as mongo.MongoServerError & Record<string, unknown>;
  t.deepEqual([code, keyPattern, keyValue], [11000, { email: 1 }, { email: 'a' }]);
  await accounts.insertOne({ email: 'b' });
  t.is(codeOf(await t.throwsAsync(accounts.updateOne({ email: 'b' }, { $set: { email: 'a' } }))), 11000);
  t.is(codeOf(await t.throwsAsync(accounts.insertOne({ _id: (await accounts.findOne())!['_id'] }))), 11000);
  await accounts.insertOne({ other: 1 });
  t.is(
    codeOf(await t.throwsAsync(accounts.insertOne({ other: 2 }))),
    11000,
    'a missing field has the index key of null',
  );
});

test('filters work for values that are too long for an index key', async (t) => {
  const texts = collectionOf(t);
  await texts.insertMany([{ _id: 'a' }, { _id: 'x' }, { _id: 'y' }]);
  const long = 'x'.repeat(100_000);
  const find = async (filter: object): Promise<unknown[]> =>
    (await texts.find(filter).sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
  t.deepEqual(await find({ _id: long }), []);
  t.deepEqual(await find({ _id: { $in: ['a', long] } }), ['a']);
  t.deepEqual(await find({ _id: { $gt: long } }), ['y']);
  t.deepEqual(await find({ _id: { $lte: long } }), ['a', 'x']);
  t.is(await texts.countDocuments({ _id: long }), 0);
  t.is((await texts.updateOne({ _id: long }, { $set: { b: 1 } })).matchedCount, 0);
});

test('unique indexes may be compound or partial', async (t) => {
  const compound = collectionOf(t);
  await compound.createIndex({ a: 1, b: -1 }, { unique: true });
  await compound.insertMany([
    { a: 1, b: 1 },
    { a: 1, b: 2 },
  ]);
  t.is(codeOf(await t.throwsAsync(compound.insertOne({ a: 1, b: 1 }))), 11000);

  const partial = collectionOf(t);
  const partialFilterExpression = { state: 'live' };
  await partial.createIndex({ key: 1 }, { unique: true, partialFilterExpression });
  await partial.insertMany([
    { key: 1, state: 'dead' },
    { key: 1, state: 'dead' },
    { _id: 9, key: 1, state: 'live' },
    { state: 'live' },
  ]);
  const revive = () => partial.updateOne({ state: 'dead' }, { $set: { state: 'live' } });
  t.is(codeOf(await t.throwsAsync(revive())), 11000);
  await partial.deleteOne({ _id: 9 });
  t.is((await revive()).modifiedCount, 1);
});

test('int64 keys beyond 2^53 are distinct keys', async (t) => {
  const numbers = collectionOf(t);
  await numbers.createIndex({ n: 1 }, { unique: true });
  await numbers.insertMany(['9007199254740992', '9007199254740993'].map((n) => ({ n: Long.fromString(n) })));
  t.is(codeOf(await t.throwsAsync(numbers.insertOne({ n: 9007199254740992 }))), 11000);
});

test('indexes are listed with their options; creating one again has no effect, or is an error if the options differ', async (t) => {
  const events = collectionOf(t);
  const makeTtl = (expireAfterSeconds: number) =>
    events.createIndex({ at: 1 }, { expireAfterSeconds, name: 'ttl' });
  await makeTtl(3600);
  await makeTtl(3600);
  t.true([85, 86].includes(codeOf(await t.throwsAsync(makeTtl(5))) as number));
  const names = (await events.indexes()).map(({ name, expireAfterSeconds }) => [name, expireAfterSeconds]);
  t.deepEqual(names, [
    ['_id_', undefined],
    ['ttl', 3600],
  ]);
  await events.insertMany([{ a: 1 }, { a: 1 }]);
  t.is(codeOf(await t.throwsAsync(events.createIndex({ a: 1 }, { unique: true }))), 11000);
  t.is((await events.indexes()).length, 2);
});

test('collMod changes when the documents of a TTL index expire', async (t) => {
  const events = collectionOf(t);
  const { db } = t.context.connection;
  const change = (keyPattern: object, expireAfterSeconds: number) =>
    db!.command({ collMod: events.collectionName, index: { keyPattern, expireAfterSeconds } });
  t.is(codeOf(await t.throwsAsync(change({ at: 1 }, 5))), 26);
  await events.createIndex({ at: 1 }, { expireAfterSeconds: 3600 });
  await change({ at: 1 }, 60);
  t.deepEqual(
    (await events.indexes()).map(({ name, expireAfterSeconds }) => [name, expireAfterSeconds]),
    [
      ['_id_', undefined],
      ['at_1', 60],
    ],
  );
  await events.createIndex({ at: 1 }, { expireAfterSeconds: 60 });
  t.is(codeOf(await t.throwsAsync(change({ other: 1 }, 5))), 27);
});

test('equality, a range and a sort on a compound index read only the documents they return', async (t) => {
  const logs = collectionOf(t);
  await logs.createIndex({ account: 1, ordinal: 1 });
  const documents = Array.from({ length: 2000 }, (_, i) => ({
    account: `a${i % 4}`,
    ordinal: Math.floor(i / 4),
  }));
  await logs.insertMany(documents);
  const filter = { account: 'a1', ordinal: { $gte: 50, $lt: 450 } };
  for (const direction of [1, -1] as const) {
    const cursor = logs.find(filter).sort({ ordinal: direction }).limit(300);
    const ordinals = (await cursor.toArray()).map(({ ordinal }) => ordinal);
    t.deepEqual(
      ordinals,
      Array.from({ length: 300 }, (_, i) => (direction === 1 ? 50 + i : 449 - i)),
    );
    const stages = await explainStages(logs.find(filter).sort({ ordinal: direction }).limit(300));
    t.true(stages.includes('IXSCAN') && stages.includes('FETCH') && !stages.includes('SORT'), stages.join());
    const { executionStats } = (await logs
      .find(filter)
      .sort({ ordinal: direction })
      .limit(300)
      .explain('executionStats')) as { executionStats: Record<string, number> };
    t.is(executionStats.nReturned, 300);
    t.true(executionStats.totalDocsExamined! <= 301 && executionStats.totalKeysExamined! <= 301);
  }
  t.true((await explainStages(logs.find({ ordinal: 3 }))).includes('COLLSCAN'));
  t.true((await explainStages(logs.find({ account: 'a1' }).sort({ other: 1 }))).includes('SORT'));
  t.is(await logs.countDocuments({ account: 'a1' }), 500);
});
