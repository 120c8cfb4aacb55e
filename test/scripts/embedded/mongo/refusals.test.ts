import test from 'ava';
import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { connect, makeCollection, startMongo } from './mongo-fixture.ts';

const { Decimal128, Timestamp } = mongoose.mongo.BSON;

const unsupportedMessage = /not supported by the embedded MongoDB; set MONGODB_URL/;

type Things = mongo.Collection;

/** Features of MongoDB that this server lacks, by error code. */
const unsupported: Record<string, [code: number, (things: Things) => Promise<unknown>]> = {
  'an unknown command': [59, ({ db }) => db.command({ mapReduce: 'things' })],
  'a find with collation': [
    40415,
    (things) => things.find({}, { collation: { locale: 'en', strength: 2 } }).toArray(),
  ],
  'an unknown option': [40415, ({ db }) => db.command({ find: 'things', tailable: true })],
  'a find with variables': [40415, (things) => things.find({}, { let: { a: 1 } }).toArray()],
  'a hint': [40415, (things) => things.find({}, { hint: '_id_' }).toArray()],
  'an explained command with an inherited name': [
    238,
    ({ db }) => db.command({ explain: { constructor: 1 } }),
  ],
  'an explained update': [
    238,
    ({ db }) => db.command({ explain: { update: 'things', updates: [{ q: {}, u: { $set: { a: 1 } } }] } }),
  ],
  'an explained find with collation': [
    40415,
    (things) => things.find({}, { collation: { locale: 'en' } }).explain('queryPlanner'),
  ],
  $expr: [2, (things) => things.findOne({ $expr: { $gt: ['$a', '$b'] } })],
  $where: [2, (things) => things.findOne({ $where: 'true' })],
  $text: [2, (things) => things.findOne({ $text: { $search: 'a' } })],
  $geoWithin: [2, (things) => things.findOne({ place: { $geoWithin: { $box: [] } } })],
  $mod: [2, (things) => things.findOne({ n: { $mod: [5, 0] } })],
  $regex: [2, (things) => things.findOne({ s: { $regex: '^a' } })],
  'a regular expression as a value': [2, (things) => things.findOne({ s: /^a/ })],
  $not: [2, (things) => things.findOne({ n: { $not: { $gt: 1 } } })],
  $nor: [2, (things) => things.findOne({ $nor: [{ n: 1 }] })],
  $type: [2, (things) => things.findOne({ n: { $type: 'int' } })],
  $elemMatch: [2, (things) => things.findOne({ list: { $elemMatch: { $gt: 1 } } })],
  'an unknown operator inside $or': [2, (things) => things.findOne({ $or: [{ n: { $bits: 1 } }] })],
  'an array element by its index': [2, (things) => things.findOne({ 'list.0': 1 })],
  'comparing objects by order': [2, (things) => things.findOne({ n: { $gt: { a: 1 } } })],
  'a Decimal128 in a filter': [2, (things) => things.findOne({ n: Decimal128.fromString('1') })],
  'a Decimal128 in a document': [2, (things) => things.insertOne({ a: [Decimal128.fromString('1')] })],
  'a Timestamp in a document': [2, (things) => things.insertOne({ a: new Timestamp({ t: 0, i: 0 }) })],
  'a regular expression in a document': [2, (things) => things.insertOne({ a: /^a/ })],
  'a field name with a dot': [2, (things) => things.insertOne({ a: { 'b.c': 1 } })],
  'a field name with a dollar': [2, (things) => things.insertOne({ a: { $b: 1 } })],
  'more levels than MongoDB stores': [
    15,
    (things) => {
      let nested: mongo.Document = {};
      for (let i = 0; i < 101; i += 1) nested = { nested };
      return things.insertOne(nested);
    },
  ],
  'sorting by an array': [2, (things) => things.find().sort({ list: 1 }).toArray()],
  'a positional projection': [2, (things) => things.findOne({ list: 1 }, { projection: { 'list.$': 1 } })],
  'a computed projection': [2, (things) => things.findOne({}, { projection: { a: '$b' } })],
  'an exclusion projection': [2, (things) => things.findOne({}, { projection: { a: 0 } })],
  'a find without _id': [2, (things) => things.findOne({}, { projection: { _id: 0, a: 1 } })],
  'a nested projection': [2, (things) => things.findOne({}, { projection: { 'a.b': 1 } })],
  'sorting by text score': [
    2,
    (things) =>
      things
        .find()
        .sort({ score: { $meta: 'textScore' } })
        .toArray(),
  ],
  'the positional operator': [2, (things) => things.updateOne({ list: 1 }, { $set: { 'list.$': 2 } })],
  'all elements of an array': [2, (things) => things.updateOne({}, { $inc: { 'list.$[]': 1 } })],
  'array filters': [
    40415,
    (things) => things.updateOne({}, { $set: { 'list.$[e]': 1 } }, { arrayFilters: [{ e: 1 }] }),
  ],
  'an update by a pipeline': [9, (things) => things.updateOne({}, [{ $set: { a: 1 } }])],
  'a replacement': [9, (things) => things.replaceOne({}, { a: 1 })],
  $rename: [9, (things) => things.updateOne({}, { $rename: { a: 'b' } })],
  $push: [9, (things) => things.updateOne({}, { $push: { list: 1 } as mongo.Document })],
  $pull: [9, (things) => things.updateOne({}, { $pull: { list: 1 } as mongo.Document })],
  $mul: [9, (things) => things.updateOne({}, { $mul: { n: 2 } })],
  $currentDate: [9, (things) => things.updateOne({}, { $currentDate: { at: true } })],
  'an upsert with a filter other than equality': [
    2,
    (things) => things.updateOne({ n: { $in: [7] } }, { $set: { a: 1 } }, { upsert: true }),
  ],
  'findAndModify with upsert': [
    238,
    (things) => things.findOneAndUpdate({ _id: 7 as never }, { $set: { a: 1 } }, { upsert: true }),
  ],
  'findAndModify with sort': [
    40415,
    (things) => things.findOneAndUpdate({}, { $set: { a: 1 } }, { sort: { n: 1 } }),
  ],
  'an update with collation': [
    40415,
    (things) => things.updateOne({}, { $set: { a: 1 } }, { collation: { locale: 'en' } }),
  ],
  'an aggregation': [40324, (things) => things.aggregate([{ $match: {} }, { $sort: { n: 1 } }]).toArray()],
  'a count that skips': [40324, (things) => things.countDocuments({}, { skip: 1 })],
  $lookup: [
    40324,
    (things) =>
      things.aggregate([{ $lookup: { from: 'o', localField: 'a', foreignField: 'b', as: 'c' } }]).toArray(),
  ],
  distinct: [59, (things) => things.distinct('n')],
  'dropping an index': [59, (things) => things.dropIndex('s_1')],
  'a text index': [67, (things) => things.createIndex({ s: 'text' })],
  'a geo index': [67, (things) => things.createIndex({ place: '2dsphere' })],
  'a hashed index': [67, (things) => things.createIndex({ s: 'hashed' })],
  'a wildcard index': [67, (things) => things.createIndex({ '$**': 1 })],
  'a hidden index': [67, (things) => things.createIndex({ s: 1 }, { hidden: true })],
  'an index with collation': [67, (things) => things.createIndex({ s: 1 }, { collation: { locale: 'en' } })],
  'a sparse index': [67, (things) => things.createIndex({ s: 1 }, { sparse: true })],
  'a partial index with a condition other than equality': [
    67,
    (things) => things.createIndex({ s: 1 }, { partialFilterExpression: { s: { $exists: true } } }),
  ],
  'a partial TTL index': [
    67,
    (things) => things.createIndex({ s: 1 }, { expireAfterSeconds: 1, partialFilterExpression: { n: 1 } }),
  ],
  'several indexes in one command': [
    238,
    (things) => things.createIndexes([{ key: { s: 1 } }, { key: { n: 1 } }]),
  ],
  'an index on an array': [2, (things) => things.createIndex({ list: 1 })],
  'an array in an index': [
    2,
    async (things) => {
      await things.createIndex({ a: 1, b: 1 });
      await things.insertOne({ a: [1, 2] });
    },
  ],
  "an index key over LMDB's limit": [
    17280,
    async (things) => {
      await things.createIndex({ s: 1 });
      await things.insertOne({ s: 'x'.repeat(3000) });
    },
  ],
  'a capped collection': [59, ({ db }) => db.createCollection('log', { capped: true, size: 4096 })],
  'a write concern for two nodes': [238, (things) => things.insertOne({}, { writeConcern: { w: 2 } })],
  'snapshot reads': [238, (things) => things.find({}, { readConcern: { level: 'snapshot' } }).toArray()],
};

test('features outside the subset are rejected with an error code of MongoDB', async (t) => {
  const { url } = await startMongo(t);
  const connection = await connect(t, url);
  for (const [what, [code, attempt]] of Object.entries(unsupported)) {
    const things = makeCollection(connection) as unknown as Things & { db: mongo.Db };
    await things.insertOne({ list: [1], n: 1, s: 'abc' });
    Object.defineProperty(things, 'db', { value: connection.db });
    const error = await t.throwsAsync<mongo.MongoServerError>(attempt(things), undefined, what);
    t.is(error.code, code, `${what}: ${error.message}`);
    t.regex(error.message, unsupportedMessage, what);
  }
});

test('unsupported features are also rejected on a collection that does not exist', async (t) => {
  const { url } = await startMongo(t);
  const connection = await connect(t, url);
  const things = makeCollection(connection);
  await t.throwsAsync(things.findOne({ a: { $bogus: 1 } }), { message: unsupportedMessage });
  await t.throwsAsync(things.countDocuments({ $expr: true }), { message: unsupportedMessage });
  await t.throwsAsync(things.deleteMany({ $where: 'true' }), { message: unsupportedMessage });
  await t.throwsAsync(things.updateOne({}, { $bogus: { a: 1 } }), { message: unsupportedMessage });
});

test('transactions and change streams are rejected', async (t) => {
  const { url } = await startMongo(t);
  const connection = await connect(t, url);
  const things = makeCollection(connection);
  const inTransaction = connection.transaction((session) => things.insertOne({ a: 1 }, { session }));
  const error = await t.throwsAsync<mongo.MongoServerError>(inTransaction);
  t.is(error.code, 263);
  t.regex(error.message, unsupportedMessage);
  t.is(await things.countDocuments(), 0);
  const stream = things.watch();
  t.regex((await t.throwsAsync<Error>(stream.next())).message, unsupportedMessage);
  await stream.close();
});
