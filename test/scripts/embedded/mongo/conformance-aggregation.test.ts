import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { collectionOf, test } from './conformance-context.ts';

const { Long } = mongoose.mongo.BSON;

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
