import type { TestFn } from 'ava';
import anyTest from 'ava';
import type { Connection, mongo } from 'mongoose';
import mongoose from 'mongoose';
import type { TestDocument } from './mongo-fixture.ts';
import { connectToAny, makeCollection } from './mongo-fixture.ts';

// What the product may rely on in any MongoDB. Runs against MONGODB_URL where one is given, else the embedded server.
const test = anyTest as TestFn<{ connection: Connection }>;
const { Decimal128, Double, Long, ObjectId, Binary } = mongoose.mongo.BSON;
type Collection = mongo.Collection<TestDocument>;

const teardowns: (() => unknown)[] = [];

test.before(async (t) => {
  t.context.connection = await connectToAny({ teardown: (act) => teardowns.push(act) });
});

test.after.always(async () => {
  for (const act of teardowns.toReversed()) await act();
});

const collectionOf = (t: { context: { connection: Connection } }) => makeCollection(t.context.connection);
const codeOf = (error: unknown) => (error as mongo.MongoServerError).code;
const idsOf = (documents: mongo.Document[]) => documents.map((document) => document['_id'] as unknown);

async function idsWhere(collection: Collection, filter: mongo.Document): Promise<unknown[]> {
  return idsOf(await collection.find(filter).sort({ _id: 1 }).toArray());
}

/** The stages of the winning plan, outermost first. */
async function explainStages(cursor: mongo.FindCursor): Promise<string[]> {
  const { queryPlanner } = (await cursor.explain('queryPlanner')) as { queryPlanner: { winningPlan: Stage } };
  const stages: string[] = [];
  for (let stage: Stage | undefined = queryPlanner.winningPlan; stage; stage = stage.inputStage)
    stages.push(stage.stage);
  return stages;
}

type Stage = { stage: string; inputStage?: Stage };

async function seedPeople(collection: Collection): Promise<void> {
  await collection.insertMany([
    { _id: 1, age: 1, name: 'x', home: { zip: 1, rooms: [{ size: 1 }, { size: 2 }] }, tags: ['a', 'b'] },
    { _id: 2, age: 5, name: 'y', home: { zip: 2, rooms: [{ size: 3 }] }, tags: ['b'] },
    { _id: 3, age: 10, name: 'z', home: { zip: null }, tags: [] },
    { _id: 4, name: 'X', home: {}, tags: ['c', 'a'], at: new Date(5000) },
    { _id: 5, age: '7', name: 'yy', at: new Date(9000) },
  ]);
}

test('the server is a primary with sessions, so that the driver retries writes', async (t) => {
  const hello = await t.context.connection.db!.admin().command({ hello: 1 });
  t.truthy(hello.setName);
  t.true(hello.logicalSessionTimeoutMinutes > 0);
});

test('filters compare within a type and reach into nested objects and arrays', async (t) => {
  const people = collectionOf(t);
  await seedPeople(people);
  const cases: [mongo.Document, number[]][] = [
    [{ age: { $gte: 5 } }, [2, 3]],
    [{ age: { $gt: 1, $lt: 10 } }, [2]],
    [{ age: { $in: [1, 10, '7'] } }, [1, 3, 5]],
    [{ age: { $nin: [1, 10] } }, [2, 4, 5]],
    [{ age: { $ne: 5 } }, [1, 3, 4, 5]],
    [{ age: { $exists: false } }, [4]],
    [{ age: { $exists: true, $type: 'string' } }, [5]],
    [{ age: { $not: { $gte: 5 } } }, [1, 4, 5]],
    [{ $or: [{ age: 1 }, { name: 'z' }] }, [1, 3]],
    [{ $nor: [{ age: 1 }, { age: 5 }] }, [3, 4, 5]],
    [{ $and: [{ age: { $gt: 0 } }, { name: { $ne: 'y' } }] }, [1, 3]],
    [{ 'home.zip': 2 }, [2]],
    [{ 'home.zip': null }, [3, 4, 5]],
    [{ 'home.rooms.size': { $gte: 2 } }, [1, 2]],
    [{ 'home.rooms.0.size': 1 }, [1]],
    [{ 'home.rooms': { $elemMatch: { size: { $gt: 1, $lt: 3 } } } }, [1]],
    [{ tags: 'a' }, [1, 4]],
    [{ tags: ['b'] }, [2]],
    [{ tags: { $all: ['a', 'c'] } }, [4]],
    [{ tags: { $size: 2 } }, [1, 4]],
    [{ tags: { $elemMatch: { $gte: 'b', $lt: 'c' } } }, [1, 2]],
    [{ tags: { $type: 'array' } }, [1, 2, 3, 4]],
    [{ at: { $gt: new Date(6000) } }, [5]],
    [{ name: /^y/ }, [2, 5]],
    [{ name: { $regex: '^x$', $options: 'i' } }, [1, 4]],
    [{ name: { $in: [/^y/, 'z'] } }, [2, 3, 5]],
  ];
  for (const [filter, expected] of cases) {
    t.deepEqual(await idsWhere(people, filter), expected, JSON.stringify(filter));
  }
});

test('sort, skip, limit and projection', async (t) => {
  const people = collectionOf(t);
  await seedPeople(people);
  t.deepEqual(idsOf(await people.find().sort({ name: 1 }).toArray()), [4, 1, 2, 5, 3]);
  const numbers = people.find({ age: { $type: 'number' } });
  t.deepEqual(idsOf(await numbers.sort({ age: -1 }).skip(1).limit(1).toArray()), [2]);
  const project = (projection: mongo.Document) => people.find({ _id: 1 }).project(projection).next();
  t.deepEqual(await project({ name: 1, 'home.zip': 1 }), { _id: 1, name: 'x', home: { zip: 1 } });
  t.deepEqual(await project({ _id: 0, home: 0, tags: 0 }), { age: 1, name: 'x' });
  t.deepEqual(await project({ _id: 0, 'home.rooms.size': 1 }), {
    home: { rooms: [{ size: 1 }, { size: 2 }] },
  });
  t.deepEqual(await project({ _id: 0, age: 1, tags: { $slice: -1 } }), { age: 1, tags: ['b'] });
});

test('values of all types sort in one order, numbers of all types by their exact value', async (t) => {
  const values = collectionOf(t);
  await values.insertMany([
    { _id: 'string', v: 'a' },
    { _id: 'int', v: 3 },
    { _id: 'null', v: null },
    { _id: 'object', v: { a: 1 } },
    { _id: 'objectId', v: new ObjectId() },
    { _id: 'boolean', v: true },
    { _id: 'date', v: new Date(0) },
    { _id: 'decimal', v: Decimal128.fromString('2.5') },
    { _id: 'long', v: Long.fromString('9007199254740993') },
    { _id: 'double', v: 9007199254740992 },
    { _id: 'binary', v: new Binary(Buffer.from([1])) },
  ]);
  const expected = [
    'null',
    'decimal',
    'int',
    'double',
    'long',
    'string',
    'object',
    'binary',
    'objectId',
    'boolean',
    'date',
  ];
  t.deepEqual(idsOf(await values.find().sort({ v: 1 }).toArray()), expected);
  await values.createIndex({ v: -1 });
  t.deepEqual(idsOf(await values.find().sort({ v: 1 }).toArray()), expected);
  t.deepEqual(await idsWhere(values, { v: { $gt: 9007199254740992 } }), ['long']);
});

test('an array sorts by its least element upwards and its greatest downwards', async (t) => {
  const values = collectionOf(t);
  await values.insertMany([
    { _id: 1, v: [5, 9] },
    { _id: 2, v: [1, 20] },
    { _id: 3, v: 7 },
  ]);
  t.deepEqual(idsOf(await values.find().sort({ v: 1 }).toArray()), [2, 1, 3]);
  t.deepEqual(idsOf(await values.find().sort({ v: -1 }).toArray()), [2, 1, 3]);
});

test('a cursor gives every document once, in batches, and can be closed early', async (t) => {
  const numbers = collectionOf(t);
  await numbers.insertMany(Array.from({ length: 1000 }, (_, i) => ({ _id: i })));
  t.is((await numbers.find().toArray()).length, 1000);
  const backwards = idsOf(await numbers.find().sort({ _id: -1 }).batchSize(33).toArray());
  t.deepEqual(
    backwards,
    Array.from({ length: 1000 }, (_, i) => 999 - i),
  );
  t.is((await numbers.find().batchSize(50).limit(120).toArray()).length, 120);
  const cursor = numbers.find().batchSize(10);
  await cursor.next();
  const getMore = cursor.id;
  await cursor.close();
  const more = t.context.connection.db!.command({ getMore, collection: numbers.collectionName });
  t.is(codeOf(await t.throwsAsync(more)), 43);
});

test('counts and distinct values', async (t) => {
  const people = collectionOf(t);
  await seedPeople(people);
  t.is(await people.countDocuments({ age: { $gte: 5 } }), 2);
  t.is(await people.countDocuments({}, { skip: 1, limit: 3 }), 3);
  t.is(await people.countDocuments({ name: 'nobody' }), 0);
  t.is(await people.estimatedDocumentCount(), 5);
  t.deepEqual(new Set(await people.distinct('tags')), new Set(['a', 'b', 'c']));
  t.deepEqual(new Set(await people.distinct('home.rooms.size', { _id: { $lt: 3 } })), new Set([1, 2, 3]));
});

test('a unique index refuses a second key with 11000, and says which', async (t) => {
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
  t.is(codeOf(await t.throwsAsync(accounts.insertOne({ other: 2 }))), 11000, 'missing counts as null');
});

test('unique indexes may be compound, partial, sparse and over arrays', async (t) => {
  const compound = collectionOf(t);
  await compound.createIndex({ a: 1, b: -1 }, { unique: true });
  await compound.insertMany([
    { a: 1, b: 1 },
    { a: 1, b: 2 },
  ]);
  t.is(codeOf(await t.throwsAsync(compound.insertOne({ a: 1, b: 1 }))), 11000);

  const partial = collectionOf(t);
  const partialFilterExpression = { key: { $exists: true }, state: 'live' };
  await partial.createIndex({ key: 1 }, { unique: true, partialFilterExpression });
  await partial.insertMany([
    { key: 1, state: 'dead' },
    { key: 1, state: 'dead' },
    { _id: 9, key: 1, state: 'live' },
    { state: 'live' },
    { state: 'live' },
  ]);
  const revive = () => partial.updateOne({ state: 'dead' }, { $set: { state: 'live' } });
  t.is(codeOf(await t.throwsAsync(revive())), 11000);
  await partial.deleteOne({ _id: 9 });
  t.is((await revive()).modifiedCount, 1);

  const sparse = collectionOf(t);
  await sparse.createIndex({ key: 1 }, { unique: true, sparse: true });
  await sparse.insertMany([{ other: 1 }, { other: 2 }, { key: 1 }]);
  t.is(codeOf(await t.throwsAsync(sparse.insertOne({ key: 1 }))), 11000);

  const multikey = collectionOf(t);
  await multikey.createIndex({ tags: 1 }, { unique: true });
  await multikey.insertOne({ tags: ['a', 'b', 'a'] });
  t.is(codeOf(await t.throwsAsync(multikey.insertOne({ tags: ['c', 'b'] }))), 11000);
});

test('int64 keys beyond 2^53 are different keys', async (t) => {
  const numbers = collectionOf(t);
  await numbers.createIndex({ n: 1 }, { unique: true });
  await numbers.insertMany(['9007199254740992', '9007199254740993'].map((n) => ({ n: Long.fromString(n) })));
  t.is(codeOf(await t.throwsAsync(numbers.insertOne({ n: 9007199254740992 }))), 11000);
});

test('indexes are listed with their options, are made once, conflict and can be dropped', async (t) => {
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
  await events.dropIndex('ttl');
  t.is((await events.indexes()).length, 1);
  await events.insertMany([{ a: 1 }, { a: 1 }]);
  t.is(codeOf(await t.throwsAsync(events.createIndex({ a: 1 }, { unique: true }))), 11000);
  t.is((await events.indexes()).length, 1);
});

test('mongoose keeps the indexes of a schema in step', async (t) => {
  const schema = new mongoose.Schema({ a: Number, b: Number }, { autoIndex: false });
  schema.index({ a: 1 });
  schema.index({ b: 1, a: -1 }, { unique: true });
  const Model = t.context.connection.model('InStep', schema);
  await Model.createCollection();
  await Model.collection.createIndex({ old: 1 });
  t.deepEqual(await Model.syncIndexes(), ['old_1']);
  t.deepEqual(await Model.diffIndexes(), { toDrop: [], toCreate: [] });
});

test('equality, a range and a sort on a compound index read what they return and nothing else', async (t) => {
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

test('insertMany without order goes on behind a duplicate and names each one', async (t) => {
  const numbers = collectionOf(t);
  await numbers.createIndex({ u: 1 }, { unique: true });
  await numbers.insertOne({ u: 2 });
  const documents = [1, 2, 3, 3, 4].map((u) => ({ u }));
  const error = await t.throwsAsync<mongo.MongoBulkWriteError>(
    numbers.insertMany(documents, { ordered: false }),
  );
  t.is(error.code, 11000);
  t.is(error.result.insertedCount, 3);
  const writeErrors = [error.writeErrors].flat();
  t.deepEqual(
    writeErrors.map(({ index, code }) => [index, code]),
    [
      [1, 11000],
      [3, 11000],
    ],
  );
  t.is(await numbers.countDocuments(), 4);
});

test('insertMany in order stops at the first duplicate', async (t) => {
  const numbers = collectionOf(t);
  t.is(codeOf(await t.throwsAsync(numbers.insertMany([{ _id: 1 }, { _id: 1 }, { _id: 2 }]))), 11000);
  t.is(await numbers.countDocuments(), 1);
});

test('update operators change nested fields and count what they changed', async (t) => {
  const things = collectionOf(t);
  await things.insertOne({ _id: 1, n: 1, o: { p: 1 }, low: 5, high: 5, gone: 1 });
  const change = {
    $set: { 'o.q.z': 2, s: 'x' },
    $inc: { n: 4, 'o.p': -1, fresh: 2 },
    $unset: { gone: '' },
    $min: { low: 3 },
    $max: { high: 8 },
  };
  const { matchedCount, modifiedCount } = await things.updateOne({ _id: 1 }, change);
  t.deepEqual([matchedCount, modifiedCount], [1, 1]);
  await things.updateOne({ _id: 1 }, { $mul: { n: 3 }, $currentDate: { at: true } });
  const { at, ...rest } = (await things.findOne({ _id: 1 }))!;
  t.true(at instanceof Date);
  t.deepEqual(rest, { _id: 1, n: 15, o: { p: 0, q: { z: 2 } }, low: 3, high: 8, s: 'x', fresh: 2 });
  t.is((await things.updateOne({ _id: 1 }, { $set: { s: 'x' } })).modifiedCount, 0);
  t.is((await things.updateOne({ _id: 99 }, { $set: { s: 'x' } })).matchedCount, 0);
});

test('array operators', async (t) => {
  const things = collectionOf(t);
  await things.insertOne({ _id: 1, list: [3, 1], rows: [{ k: 1 }, { k: 2 }] });
  const update = (change: mongo.Document) => things.updateOne({ _id: 1 }, change);
  await update({ $push: { list: 2, made: 'x' } });
  await update({ $push: { list: { $each: [9, 8], $slice: -4 } } });
  await update({ $addToSet: { list: { $each: [1, 7, 7] } } });
  t.deepEqual((await things.findOne())!.list, [1, 2, 9, 8, 7]);
  await update({ $pull: { list: { $gte: 8 }, rows: { k: 1 } } });
  await update({ $pull: { list: 2 } });
  t.deepEqual(await things.findOne(), { _id: 1, list: [1, 7], rows: [{ k: 2 }], made: ['x'] });
});

test('updateMany, replaceOne and deletes', async (t) => {
  const things = collectionOf(t);
  await things.insertMany([
    { _id: 1, g: 1 },
    { _id: 2, g: 1 },
    { _id: 3, g: 2 },
  ]);
  t.is((await things.updateMany({ g: 1 }, { $inc: { g: 1 } })).modifiedCount, 2);
  await things.replaceOne({ _id: 3 }, { w: 1 });
  t.deepEqual(await things.findOne({ _id: 3 }), { _id: 3, w: 1 });
  t.is((await things.deleteOne({ g: 2 })).deletedCount, 1);
  t.is((await things.deleteMany({ g: { $lt: 5 } })).deletedCount, 1);
  t.is((await things.deleteMany({})).deletedCount, 1);
});

test('an upsert starts from what the filter demands, and $setOnInsert holds for it alone', async (t) => {
  const things = collectionOf(t);
  const upsert = (v: number) =>
    things.updateOne(
      { k: 'a', n: { $gte: 0 } },
      { $set: { v }, $setOnInsert: { first: v }, $inc: { n: 1 } },
      { upsert: true },
    );
  t.is((await upsert(1)).upsertedCount, 1);
  t.is((await upsert(2)).upsertedCount, 0);
  const { _id, ...rest } = (await things.findOne())!;
  t.true(_id instanceof ObjectId);
  t.deepEqual(rest, { k: 'a', first: 1, n: 2, v: 2 });
  t.is((await things.updateOne({ _id: 'own' }, { $set: { q: 1 } }, { upsert: true })).upsertedId, 'own');
});

test('wrong updates and filters fail with the codes of MongoDB', async (t) => {
  const things = collectionOf(t);
  await things.insertOne({ _id: 1, s: 'x' });
  const failing: [number, Promise<unknown>][] = [
    [66, things.updateOne({ _id: 1 }, { $set: { _id: 2 } })],
    [40, things.updateOne({ _id: 1 }, { $set: { a: 1 }, $inc: { a: 1 } })],
    [40, things.updateOne({ _id: 1 }, { $set: { a: {}, 'a.b': 1 } })],
    [9, things.updateOne({ _id: 1 }, { $bogus: { a: 1 } })],
    [14, things.updateOne({ _id: 1 }, { $inc: { s: 1 } })],
    [28, things.updateOne({ _id: 1 }, { $set: { 's.t': 1 } })],
    [2, things.findOne({ a: { $bogus: 1 } })],
  ];
  for (const [code, failure] of failing) t.is(codeOf(await t.throwsAsync(failure)), code);
});

test('findOneAndUpdate returns the old or the new document, sorted, projected and upserted', async (t) => {
  const things = collectionOf(t);
  await things.insertMany([
    { _id: 1, b: 5 },
    { _id: 2, b: 7 },
  ]);
  const spend = () =>
    things.findOneAndUpdate({ _id: 1, b: { $gte: 5 } }, { $inc: { b: -5 } }, { returnDocument: 'after' });
  t.deepEqual(await spend(), { _id: 1, b: 0 });
  t.is(await spend(), null);
  t.deepEqual(await things.findOneAndUpdate({ _id: 1 }, { $inc: { b: 1 } }), { _id: 1, b: 0 });
  const upsert = { upsert: true, returnDocument: 'after' } as const;
  t.deepEqual(await things.findOneAndUpdate({ _id: 3 }, { $set: { b: 1 } }, upsert), { _id: 3, b: 1 });
  const last = { sort: { b: -1 }, returnDocument: 'after', projection: { m: 1 } } as const;
  t.deepEqual(await things.findOneAndUpdate({}, { $set: { m: 1 } }, last), { _id: 2, m: 1 });
  t.deepEqual(await things.findOneAndDelete({ _id: 3 }), { _id: 3, b: 1 });
  const after = { returnDocument: 'after' } as const;
  t.deepEqual(await things.findOneAndReplace({ _id: 1 }, { x: 1 }, after), { _id: 1, x: 1 });
});

test('of 200 concurrent conditional debits none is lost and none goes below zero', async (t) => {
  const accounts = collectionOf(t);
  await accounts.insertOne({ _id: 1, balance: Long.fromNumber(1000), n: 0 });
  const debit = () =>
    accounts.findOneAndUpdate(
      { _id: 1, balance: { $gte: 7 } },
      { $inc: { balance: Long.fromNumber(-7), n: 1 } },
      { returnDocument: 'after' },
    );
  const answers = (await Promise.all(Array.from({ length: 200 }, debit))).filter((answer) => answer !== null);
  t.is(answers.length, 142);
  t.is(new Set(answers.map(({ balance }) => balance)).size, 142);
  t.deepEqual(await accounts.findOne(), { _id: 1, balance: 1000 - 142 * 7, n: 142 });
});

test('of 100 concurrent upserts on a unique key one makes the document', async (t) => {
  const things = collectionOf(t);
  await things.createIndex({ k: 1 }, { unique: true });
  const upserts = Array.from({ length: 100 }, () =>
    things.updateOne({ k: 1 }, { $inc: { n: 1 } }, { upsert: true }),
  );
  const done = (await Promise.allSettled(upserts)).filter(({ status }) => status === 'fulfilled').length;
  t.is(await things.countDocuments(), 1);
  t.is((await things.findOne())!.n, done);
});

test('bulkWrite adds up int64 exactly and tells of upserts and errors by their place', async (t) => {
  const stats = collectionOf(t);
  await stats.createIndex({ day: 1 }, { unique: true });
  const cost = Long.fromString('9007199254740993');
  const add = (day: string) => ({
    updateOne: { filter: { day }, update: { $inc: { cost, n: 1 } }, upsert: true },
  });
  const result = await stats.bulkWrite([add('mon'), add('mon'), add('tue')]);
  t.deepEqual(
    [result.upsertedCount, result.modifiedCount, Object.keys(result.upsertedIds)],
    [2, 1, ['0', '2']],
  );
  const monday = await stats.findOne({ day: 'mon' }, { promoteLongs: false });
  t.is(String(monday!.cost), '18014398509481986');

  const mixed = [{ insertOne: { document: { day: 'mon' } } }, { insertOne: { document: { day: 'wed' } } }];
  const error = await t.throwsAsync<mongo.MongoBulkWriteError>(stats.bulkWrite(mixed, { ordered: false }));
  t.deepEqual(
    [error.writeErrors].flat().map(({ index, code }) => [index, code]),
    [[0, 11000]],
  );
  t.is(await stats.countDocuments({ day: 'wed' }), 1);
  await t.throwsAsync(
    stats.bulkWrite([mixed[0]!, { deleteOne: { filter: { day: 'tue' } } }], { ordered: true }),
  );
  t.is(await stats.countDocuments({ day: 'tue' }), 1);
});

test('int32, int64 and double keep their types through an update, and int64 overflow is an error', async (t) => {
  const numbers = collectionOf(t);
  const long = Long.fromString('9223372036854775800');
  await numbers.insertOne({ _id: 1, int: 5, long, double: new Double(5) });
  await numbers.updateOne({ _id: 1 }, { $set: { touched: true }, $inc: { long: 7 } });
  const types = { int: { $type: 'int' }, long: { $type: 'long' }, double: { $type: 'double' } };
  t.is(await numbers.countDocuments(types), 1);
  t.is(String((await numbers.findOne({}, { promoteLongs: false }))!.long), '9223372036854775807');
  await t.throwsAsync(numbers.updateOne({ _id: 1 }, { $inc: { long: 1 } }));
  await numbers.updateOne({ _id: 1 }, { $inc: { int: 2147483647 } });
  t.is(await numbers.countDocuments({ int: { $type: 'long', $eq: 2147483652 } }), 1);
});

test('aggregation groups, sums and sorts', async (t) => {
  const sales = collectionOf(t);
  await sales.insertMany(
    Array.from({ length: 60 }, (_, i) => ({
      _id: i,
      day: new Date(Date.UTC(2026, 0, 1 + (i % 3), i % 24)),
      amount: i,
      ok: i % 2 === 0,
      user: `u${i % 4}`,
    })),
  );
  const byDay = await sales
    .aggregate([
      { $match: { amount: { $gte: 0 } } },
      {
        $group: {
          _id: { $dateToString: { format: '%Y-%m-%d', date: '$day' } },
          n: { $sum: 1 },
          total: { $sum: '$amount' },
          average: { $avg: '$amount' },
          good: { $sum: { $cond: ['$ok', 1, 0] } },
          least: { $min: '$amount' },
          most: { $max: '$amount' },
        },
      },
      { $sort: { _id: 1 } },
      { $limit: 2 },
    ])
    .toArray();
  t.deepEqual(byDay, [
    { _id: '2026-01-01', n: 20, total: 570, average: 28.5, good: 10, least: 0, most: 57 },
    { _id: '2026-01-02', n: 20, total: 590, average: 29.5, good: 10, least: 1, most: 58 },
  ]);
  const [byUser] = await sales
    .aggregate([
      { $sort: { _id: 1 } },
      {
        $group: {
          _id: { user: '$user', ok: '$ok' },
          first: { $first: '$amount' },
          last: { $last: '$amount' },
          all: { $push: '$amount' },
          kinds: { $addToSet: '$ok' },
          n: { $count: {} },
        },
      },
      { $sort: { '_id.user': 1 } },
      { $project: { first: 1, last: 1, n: 1, kinds: 1, double: { $multiply: ['$last', 2] } } },
    ])
    .toArray();
  t.deepEqual(byUser, {
    _id: { user: 'u0', ok: true },
    first: 0,
    last: 56,
    n: 15,
    kinds: [true],
    double: 112,
  });
});

test('aggregation stages for the shape of documents', async (t) => {
  const things = collectionOf(t);
  await things.insertMany([
    { _id: 1, tags: ['a', 'b'], v: 1 },
    { _id: 2, tags: [], v: 2 },
    { _id: 3, v: null },
  ]);
  const run = (...pipeline: mongo.Document[]) => things.aggregate(pipeline).toArray();
  const unwound = await run({ $sort: { _id: 1 } }, { $unwind: '$tags' }, { $project: { tags: 1 } });
  t.deepEqual(unwound, [
    { _id: 1, tags: 'a' },
    { _id: 1, tags: 'b' },
  ]);
  t.deepEqual(
    await run({ $match: { v: 1 } }, { $addFields: { w: { $add: ['$v', 1] } } }, { $unset: 'tags' }),
    [{ _id: 1, v: 1, w: 2 }],
  );
  t.deepEqual(await run({ $match: { v: null } }, { $project: { _id: 0, v: { $ifNull: ['$v', 'none'] } } }), [
    { v: 'none' },
  ]);
  t.deepEqual(await run({ $match: {} }, { $count: 'n' }), [{ n: 3 }]);
  t.deepEqual(await run({ $sort: { _id: -1 } }, { $skip: 1 }, { $limit: 1 }, { $project: { _id: 1 } }), [
    { _id: 2 },
  ]);
});

test('sums of int64 are exact and those of doubles do not drift', async (t) => {
  const numbers = collectionOf(t);
  const documents = ['9007199254740993', '1', '1'].map((long) => ({ long: Long.fromString(long) }));
  await numbers.insertMany([...documents, ...Array.from({ length: 10 }, () => ({ tenth: 0.1 }))]);
  const sums = { $group: { _id: null, long: { $sum: '$long' }, tenths: { $sum: '$tenth' } } };
  const [result] = await numbers.aggregate([sums], { promoteLongs: false }).toArray();
  t.is(String(result!.long), '9007199254740995');
  t.is(result!.tenths, 1);
});

test('Decimal128 is stored, compared exactly and returned', async (t) => {
  const numbers = collectionOf(t);
  await numbers.insertMany([
    { _id: 1, v: Decimal128.fromString('9.99') },
    { _id: 2, v: 9.99 },
    { _id: 3, v: Decimal128.fromString('10') },
    { _id: 4, v: 10 },
  ]);
  t.deepEqual(await idsWhere(numbers, { v: 9.99 }), [2]);
  t.deepEqual(await idsWhere(numbers, { v: Decimal128.fromString('9.99') }), [1]);
  t.deepEqual(await idsWhere(numbers, { v: 10 }), [3, 4]);
  await numbers.createIndex({ v: 1 });
  t.deepEqual(await idsWhere(numbers, { v: { $lt: Decimal128.fromString('10.0') } }), [1, 2]);
});

test('documents over 16 MB are refused, and results of many MB come in several batches', async (t) => {
  const blobs = collectionOf(t);
  await blobs.insertOne({ _id: 0, parts: [Buffer.alloc(9 << 20)] });
  const grow = { $push: { parts: Buffer.alloc(9 << 20) } };
  t.true(
    [17419, 10334, 17420].includes(codeOf(await t.throwsAsync(blobs.updateOne({ _id: 0 }, grow))) as number),
  );
  for (let i = 1; i < 20; i += 1) await blobs.insertOne({ _id: i, part: Buffer.alloc(1 << 20) });
  t.is((await blobs.find().toArray()).length, 20);
});

test('mongoose documents: timestamps, populate, lean, and version conflicts', async (t) => {
  const { connection } = t.context;
  const options = { timestamps: true, optimisticConcurrency: true } as const;
  const Owner = connection.model('Owner', new mongoose.Schema({ name: String }, options));
  const ownerRef = { type: mongoose.Schema.Types.ObjectId, ref: 'Owner' };
  const Pet = connection.model('Pet', new mongoose.Schema({ owner: ownerRef, age: Number }));
  const owner = await Owner.create({ name: 'n' });
  t.true(owner.createdAt instanceof Date);
  await Pet.insertMany(Array.from({ length: 150 }, (_, age) => ({ owner: owner.id, age })));
  const pet = await Pet.findOne({ age: 3 }).populate<{ owner: { name: string } }>('owner');
  t.is(pet!.owner.name, 'n');
  const young = await Pet.find({ age: { $lt: 3 } })
    .sort('-age')
    .select('age -_id')
    .lean();
  t.deepEqual(young as unknown, [{ age: 2 }, { age: 1 }, { age: 0 }]);
  const [one, two] = [await Owner.findById(owner.id), await Owner.findById(owner.id)];
  one!.name = 'first';
  await one!.save();
  two!.name = 'second';
  await t.throwsAsync(two!.save(), { name: 'VersionError' });
  await Pet.collection.drop();
  t.is(await Pet.countDocuments(), 0);
  const names = (await connection.db!.listCollections().toArray()).map(({ name }) => name);
  t.true(names.includes('owners') && !names.includes('pets'));
});
