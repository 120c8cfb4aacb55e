import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { codeOf, collectionOf, useConformanceServer } from './conformance-context.ts';

const test = useConformanceServer();

const { Double, Long, ObjectId } = mongoose.mongo.BSON;

test('unordered insertMany continues after a duplicate and reports each one', async (t) => {
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

test('ordered insertMany stops at the first duplicate', async (t) => {
  const numbers = collectionOf(t);
  t.is(codeOf(await t.throwsAsync(numbers.insertMany([{ _id: 1 }, { _id: 1 }, { _id: 2 }]))), 11000);
  t.is(await numbers.countDocuments(), 1);
});

test('update operators change nested fields and count the changed documents', async (t) => {
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
  t.deepEqual(await things.findOne({ _id: 1 }), {
    _id: 1,
    n: 5,
    o: { p: 0, q: { z: 2 } },
    low: 3,
    high: 8,
    s: 'x',
    fresh: 2,
  });
  t.is((await things.updateOne({ _id: 1 }, { $set: { s: 'x' } })).modifiedCount, 0);
  t.is((await things.updateOne({ _id: 99 }, { $set: { s: 'x' } })).matchedCount, 0);
});

test('$addToSet adds only missing values, and equal numbers of any type are the same value', async (t) => {
  const things = collectionOf(t);
  await things.insertOne({ _id: 1, list: [3, 1] });
  const add = (values: mongo.Document) => things.updateOne({ _id: 1 }, { $addToSet: values });
  await add({ list: { $each: [new Double(1), 7, 7] }, made: 'x' });
  await add({ list: 3 });
  t.deepEqual(await things.findOne(), { _id: 1, list: [3, 1, 7], made: ['x'] });
});

test('updateMany, deleteOne and deleteMany change only matching documents', async (t) => {
  const things = collectionOf(t);
  await things.insertMany([
    { _id: 1, g: 1 },
    { _id: 2, g: 1 },
    { _id: 3, g: 3 },
  ]);
  t.is((await things.updateMany({ g: 1 }, { $inc: { g: 1 } })).modifiedCount, 2);
  t.is((await things.deleteOne({ g: 3 })).deletedCount, 1);
  t.is((await things.deleteMany({ g: { $lt: 5 } })).deletedCount, 2);
});

test('an upsert inserts the values of the equality conditions, and $setOnInsert applies only to inserted documents', async (t) => {
  const things = collectionOf(t);
  const upsert = (v: number) =>
    things.updateOne(
      { k: 'a' },
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

test('invalid updates and filters fail with the error codes of MongoDB', async (t) => {
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

test('findOneAndUpdate returns the old or the new document, projected', async (t) => {
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
  const projected = { returnDocument: 'after', projection: { m: 1 } } as const;
  t.deepEqual(await things.findOneAndUpdate({ _id: 2 }, { $set: { m: 1 } }, projected), { _id: 2, m: 1 });
  t.deepEqual(await things.findOneAndDelete({ _id: 2 }), { _id: 2, b: 7, m: 1 });
});

test('200 concurrent conditional debits are all applied or rejected correctly, and the balance never goes below zero', async (t) => {
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

test('of 100 concurrent upserts on a unique key, exactly one creates the document', async (t) => {
  const things = collectionOf(t);
  await things.createIndex({ k: 1 }, { unique: true });
  const upserts = Array.from({ length: 100 }, () =>
    things.updateOne({ k: 1 }, { $inc: { n: 1 } }, { upsert: true }),
  );
  const done = (await Promise.allSettled(upserts)).filter(({ status }) => status === 'fulfilled').length;
  t.is(await things.countDocuments(), 1);
  t.is((await things.findOne())!.n, done);
});

test('bulkWrite adds int64 exactly and reports upserts and errors by index', async (t) => {
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
  const read = async (): Promise<string[]> => {
    const found = (await numbers.findOne({}, { promoteValues: false, promoteLongs: false }))!;
    return ['int', 'long', 'double'].map((name) => `${name} ${(found[name] as object).constructor.name}`);
  };
  t.deepEqual(await read(), ['int Int32', 'long Long', 'double Double']);
  t.is(String((await numbers.findOne({}, { promoteLongs: false }))!.long), '9223372036854775807');
  await t.throwsAsync(numbers.updateOne({ _id: 1 }, { $inc: { long: 1 } }));
  await numbers.updateOne({ _id: 1 }, { $inc: { int: 2147483647 } });
  t.deepEqual(await read(), ['int Long', 'long Long', 'double Double']);
  t.is(await numbers.countDocuments({ int: 2147483652 }), 1);
});
