import type { mongo } from 'mongoose';
import mongoose from 'mongoose';
import { codeOf, collectionOf, idsOf, idsWhere, test } from './conformance-context.ts';
import type { TestDocument } from './mongo-fixture.ts';

const { Binary, Decimal128, Long, ObjectId } = mongoose.mongo.BSON;

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
  const grow: mongo.Document = { $push: { parts: Buffer.alloc(9 << 20) } };
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
