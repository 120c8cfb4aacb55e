import test from 'ava';
import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { connect, makeCollection, startMongo } from './mongo-fixture.ts';

const { Decimal128 } = mongoose.mongo.BSON;

const refusal = /not supported by the embedded MongoDB; set MONGODB_URL/;

type Things = mongo.Collection;

/** What MongoDB can do and this server cannot, by the code with which it says so. */
const refused: Record<string, [code: number, (things: Things) => Promise<unknown>]> = {
  'an unknown command': [59, ({ db }) => db.command({ mapReduce: 'things' })],
  'collation of a find': [
    40415,
    (things) => things.find({}, { collation: { locale: 'en', strength: 2 } }).toArray(),
  ],
  'an unknown option': [40415, ({ db }) => db.command({ find: 'things', tailable: true })],
  'variables of a find': [40415, (things) => things.find({}, { let: { a: 1 } }).toArray()],
  'an explained command with an inherited name': [
    238,
    ({ db }) => db.command({ explain: { constructor: 1 } }),
  ],
  'collation of an explained find': [
    40415,
    (things) => things.find({}, { collation: { locale: 'en' } }).explain('queryPlanner'),
  ],
  $expr: [2, (things) => things.findOne({ $expr: { $gt: ['$a', '$b'] } })],
  $where: [2, (things) => things.findOne({ $where: 'true' })],
  $text: [2, (things) => things.findOne({ $text: { $search: 'a' } })],
  $geoWithin: [2, (things) => things.findOne({ place: { $geoWithin: { $box: [] } } })],
  $mod: [2, (things) => things.findOne({ n: { $mod: [5, 0] } })],
  'an unknown operator inside $or': [2, (things) => things.findOne({ $or: [{ n: { $bits: 1 } }] })],
  'a pattern that PCRE reads otherwise': [2, (things) => things.findOne({ s: { $regex: '[[:alpha:]]' } })],
  'an unknown regex option': [2, (things) => things.findOne({ s: { $regex: 'a b', $options: 'x' } })],
  'a positional projection': [238, (things) => things.findOne({ list: 1 }, { projection: { 'list.$': 1 } })],
  'a computed projection': [238, (things) => things.findOne({}, { projection: { a: '$b' } })],
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
  $rename: [9, (things) => things.updateOne({}, { $rename: { a: 'b' } })],
  '$position in $push': [
    2,
    (things) => {
      const insert: mongo.Document = { $push: { list: { $each: [1], $position: 0 } } };
      return things.updateOne({}, insert);
    },
  ],
  'collation of an update': [
    40415,
    (things) => things.updateOne({}, { $set: { a: 1 } }, { collation: { locale: 'en' } }),
  ],
  'Decimal128 arithmetic': [
    238,
    (things) => things.updateOne({}, { $inc: { decimal: Decimal128.fromString('1') } }),
  ],
  'Decimal128 sums': [
    238,
    (things) => things.aggregate([{ $group: { _id: null, s: { $sum: '$decimal' } } }]).toArray(),
  ],
  $lookup: [
    40324,
    (things) =>
      things.aggregate([{ $lookup: { from: 'o', localField: 'a', foreignField: 'b', as: 'c' } }]).toArray(),
  ],
  $facet: [40324, (things) => things.aggregate([{ $facet: { a: [{ $count: 'n' }] } }]).toArray()],
  $out: [40324, (things) => things.aggregate([{ $out: 'other' }]).toArray()],
  'an unknown expression': [
    168,
    (things) => things.aggregate([{ $project: { a: { $concat: ['$s', 'x'] } } }]).toArray(),
  ],
  'an unknown accumulator': [
    15952,
    (things) => things.aggregate([{ $group: { _id: null, s: { $stdDevPop: '$n' } } }]).toArray(),
  ],
  'a variable': [17276, (things) => things.aggregate([{ $project: { a: '$$ROOT' } }]).toArray()],
  'a time zone': [
    238,
    (things) =>
      things
        .aggregate([{ $project: { a: { $dateToString: { date: '$at', timezone: 'Europe/Berlin' } } } }])
        .toArray(),
  ],
  'a text index': [67, (things) => things.createIndex({ s: 'text' })],
  'a geo index': [67, (things) => things.createIndex({ place: '2dsphere' })],
  'a hashed index': [67, (things) => things.createIndex({ s: 'hashed' })],
  'a wildcard index': [67, (things) => things.createIndex({ '$**': 1 })],
  'a hidden index': [67, (things) => things.createIndex({ s: 1 }, { hidden: true })],
  'an index with collation': [67, (things) => things.createIndex({ s: 1 }, { collation: { locale: 'en' } })],
  'an index of two arrays': [
    171,
    async (things) => {
      await things.createIndex({ a: 1, b: 1 });
      await things.insertOne({ a: [1, 2], b: [1, 2] });
    },
  ],
  'an index key beyond the limit of LMDB': [
    17280,
    async (things) => {
      await things.createIndex({ s: 1 });
      await things.insertOne({ s: 'x'.repeat(3000) });
    },
  ],
  'a capped collection': [40415, ({ db }) => db.createCollection('log', { capped: true, size: 4096 })],
  'a view': [40415, ({ db }) => db.createCollection('view', { viewOn: 'things', pipeline: [] })],
  'a write concern for two nodes': [238, (things) => things.insertOne({}, { writeConcern: { w: 2 } })],
  'snapshot reads': [238, (things) => things.find({}, { readConcern: { level: 'snapshot' } }).toArray()],
};

test('what is outside the subset is refused with a code of MongoDB, and not answered', async (t) => {
  const { url } = await startMongo(t);
  const connection = await connect(t, url);
  for (const [what, [code, attempt]] of Object.entries(refused)) {
    const things = makeCollection(connection) as unknown as Things & { db: mongo.Db };
    await things.insertOne({ list: [1], decimal: Decimal128.fromString('1'), at: new Date(), s: 'abc' });
    Object.defineProperty(things, 'db', { value: connection.db });
    const error = await t.throwsAsync<mongo.MongoServerError>(attempt(things), undefined, what);
    t.is(error.code, code, `${what}: ${error.message}`);
    t.regex(error.message, refusal, what);
  }
});

test('what is unknown is refused on a collection that does not exist too', async (t) => {
  const { url } = await startMongo(t);
  const connection = await connect(t, url);
  const things = makeCollection(connection);
  await t.throwsAsync(things.findOne({ a: { $bogus: 1 } }), { message: refusal });
  await t.throwsAsync(things.countDocuments({ $expr: true }), { message: refusal });
  await t.throwsAsync(things.deleteMany({ $where: 'true' }), { message: refusal });
  await t.throwsAsync(things.updateOne({}, { $bogus: { a: 1 } }), { message: refusal });
});

test('transactions and change streams are refused', async (t) => {
  const { url } = await startMongo(t);
  const connection = await connect(t, url);
  const things = makeCollection(connection);
  const inTransaction = connection.transaction((session) => things.insertOne({ a: 1 }, { session }));
  const error = await t.throwsAsync<mongo.MongoServerError>(inTransaction);
  t.is(error.code, 263);
  t.regex(error.message, refusal);
  t.is(await things.countDocuments(), 0);
  const stream = things.watch();
  t.regex((await t.throwsAsync<Error>(stream.next())).message, refusal);
  await stream.close();
});
