import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { codeOf, collectionOf, idsOf, idsWhere, useConformanceServer } from './conformance-context.ts';
import type { TestDocument } from './mongo-fixture.ts';

const test = useConformanceServer();

const { Binary, Long, ObjectId } = mongoose.mongo.BSON;

async function seedPeople(collection: mongo.Collection<TestDocument>): Promise<void> {
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

test('filters compare only values of the same type, including in nested objects and arrays', async (t) => {
  const people = collectionOf(t);
  await seedPeople(people);
  const cases: [mongo.Document, number[]][] = [
    [{ age: { $gte: 5 } }, [2, 3]],
    [{ age: { $gt: 1, $lt: 10 } }, [2]],
    [{ age: { $in: [1, 10, '7'] } }, [1, 3, 5]],
    [{ age: { $nin: [1, 10] } }, [2, 4, 5]],
    [{ age: { $ne: 5 } }, [1, 3, 4, 5]],
    [{ age: { $exists: false } }, [4]],
    [{ $or: [{ age: 1 }, { name: 'z' }] }, [1, 3]],
    [{ $and: [{ age: { $gt: 0 } }, { name: { $ne: 'y' } }] }, [1, 3]],
    [{ 'home.zip': 2 }, [2]],
    [{ 'home.zip': null }, [3, 4, 5]],
    [{ 'home.rooms.size': { $gte: 2 } }, [1, 2]],
    [{ tags: 'a' }, [1, 4]],
    [{ tags: ['b'] }, [2]],
    [{ at: { $gt: new Date(6000) } }, [5]],
  ];
  for (const [filter, expected] of cases) {
    t.deepEqual(await idsWhere(people, filter), expected, JSON.stringify(filter));
  }
});

test('find applies sort, skip, limit and projection', async (t) => {
  const people = collectionOf(t);
  await seedPeople(people);
  t.deepEqual(idsOf(await people.find().sort({ name: 1 }).toArray()), [4, 1, 2, 5, 3]);
  const numbers = people.find({ age: { $gte: 0 } });
  t.deepEqual(idsOf(await numbers.sort({ age: -1 }).skip(1).limit(1).toArray()), [2]);
  const project = (projection: mongo.Document) => people.find({ _id: 1 }).project(projection).next();
  t.deepEqual(await project({ name: 1, absent: 1 }), { _id: 1, name: 'x' });
  t.deepEqual(await project({ tags: 1, age: 1 }), { _id: 1, age: 1, tags: ['a', 'b'] });
  t.deepEqual(await project({ _id: 1 }), { _id: 1 });
});

test('values of all types sort in one order, and numbers of all types by their exact value', async (t) => {
  const values = collectionOf(t);
  await values.insertMany([
    { _id: 'string', v: 'a' },
    { _id: 'int', v: 3 },
    { _id: 'null', v: null },
    { _id: 'object', v: { a: 1 } },
    { _id: 'objectId', v: new ObjectId() },
    { _id: 'boolean', v: true },
    { _id: 'date', v: new Date(0) },
    { _id: 'long', v: Long.fromString('9007199254740993') },
    { _id: 'double', v: 9007199254740992 },
    { _id: 'binary', v: new Binary(Buffer.from([1])) },
  ]);
  const expected = [
    'null',
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

test('a cursor returns every document once, in batches, and can be closed early', async (t) => {
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

test('countDocuments counts the documents that match the filter', async (t) => {
  const people = collectionOf(t);
  await seedPeople(people);
  t.is(await people.countDocuments({ age: { $gte: 5 } }), 2);
  t.is(await people.countDocuments({}), 5);
  t.is(await people.countDocuments({ name: 'nobody' }), 0);
  t.is(await people.countDocuments({ age: { $gte: 5 } }, { limit: 1 }), 1);
  t.is(await people.countDocuments({ age: { $gte: 5 } }, { limit: 3 }), 2);
  t.is(await people.countDocuments({}, { limit: 4 }), 4);
});

test('groups are sums by the values of fields, of which some may be missing', async (t) => {
  const things = collectionOf(t);
  await things.insertMany([
    { _id: 1, owner: 'ann', kind: 'x', n: 1 },
    { _id: 2, owner: 'bob', kind: 'x', n: 2 },
    { _id: 3, owner: 'ann', kind: 'x', n: 3 },
    { _id: 4, owner: 'ann', n: 4 },
    { _id: 5, owner: 'ann', kind: 'y' },
  ]);
  const sum = async (...names: string[]) => {
    const _id = Object.fromEntries(names.map((name) => [name, `$${name}`]));
    const found = await things
      .aggregate([{ $match: { _id: { $gte: 1 } } }, { $group: { _id, n: { $sum: '$n' } } }])
      .toArray();
    return found.map((one) => `${JSON.stringify(one['_id'])} ${Number(one['n'])}`).toSorted();
  };
  t.deepEqual(await sum('owner'), ['{"owner":"ann"} 8', '{"owner":"bob"} 2']);
  t.deepEqual(await sum('owner', 'kind'), [
    '{"owner":"ann","kind":"x"} 4',
    '{"owner":"ann","kind":"y"} 0',
    '{"owner":"ann"} 4',
    '{"owner":"bob","kind":"x"} 2',
  ]);
});

test('one group sums numbers of every type over the first documents of an order', async (t) => {
  const things = collectionOf(t);
  await things.insertMany([
    { _id: 1, n: 3, long: Long.fromString('5000000000'), lines: 4 },
    { _id: 2, n: 2_147_483_647, long: Long.fromString('1') },
    { _id: 3, n: 'text', long: null, lines: null },
    { _id: 4, n: 100 },
  ]);
  const sum = async (filter: mongo.Document, limit: number): Promise<unknown> => {
    const fields = {
      rows: { $sum: 1 },
      n: { $sum: '$n' },
      long: { $sum: '$long' },
      lines: { $sum: { $ifNull: ['$lines', 1] } },
    };
    const stages = [{ $match: filter }, { $sort: { _id: 1 } }, { $limit: limit }];
    const found = await things.aggregate([...stages, { $group: { _id: null, ...fields } }]).toArray();
    // Connections may read a 64-bit integer as a bigint.
    return found.map(({ _id, ...sums }) => Object.values(sums).map(Number));
  };
  t.deepEqual(await sum({}, 3), [[3, 2_147_483_650, 5_000_000_001, 6]]);
  t.deepEqual(await sum({ _id: { $gt: 3 } }, 3), [[1, 100, 0, 1]]);
  t.deepEqual(await sum({ _id: 9 }, 3), []);
});

test('documents over 16 MB are rejected, and results of many MB come in several batches', async (t) => {
  const blobs = collectionOf(t);
  await blobs.insertOne({ _id: 0, parts: [Buffer.alloc(9 << 20)] });
  const grow: mongo.Document = { $addToSet: { parts: Buffer.alloc(9 << 20, 1) } };
  t.true(
    [17419, 10334, 17420].includes(codeOf(await t.throwsAsync(blobs.updateOne({ _id: 0 }, grow))) as number),
  );
  for (let i = 1; i < 20; i += 1) await blobs.insertOne({ _id: i, part: Buffer.alloc(1 << 20) });
  t.is((await blobs.find().toArray()).length, 20);
});

test('mongoose models find, change and remove documents', async (t) => {
  const { connection } = t.context;
  const Pet = connection.model(
    'Pet',
    new mongoose.Schema({ owner: String, age: Number }, { autoCreate: false }),
  );
  await Pet.insertMany(Array.from({ length: 150 }, (_, age) => ({ owner: 'n', age })));
  const young = await Pet.find({ age: { $lt: 3 } })
    .sort('-age')
    .select('age')
    .lean();
  t.deepEqual(
    young.map(({ age }) => age),
    [2, 1, 0],
  );
  const older = await Pet.findOneAndUpdate({ age: 2 }, { $inc: { age: 200 } }, { returnDocument: 'after' });
  t.is(older!.age, 202);
  t.is((await Pet.deleteMany({ owner: 'n' })).deletedCount, 150);
  const names = (await connection.db!.listCollections().toArray()).map(({ name }) => name);
  t.true(names.includes('pets'));
});
