import test from 'ava';
import { Double, Int32, Long } from 'bson';
import * as fc from 'fast-check';
import { areEqual, compareValues } from '../../../../scripts/embedded/mongo/bson/compare.ts';
import { decodeDocument, encodeDocument, getId } from '../../../../scripts/embedded/mongo/bson/document.ts';
import type { Doc } from '../../../../scripts/embedded/mongo/bson/document.ts';
import { parseIndexSpec } from '../../../../scripts/embedded/mongo/storage/indexes.ts';
import type { Query } from '../../../../scripts/embedded/mongo/query/find.ts';
import { countMatching, prepareQuery } from '../../../../scripts/embedded/mongo/query/find.ts';
import { parseSort, sortDocuments } from '../../../../scripts/embedded/mongo/query/sort.ts';
import type { Collection } from '../../../../scripts/embedded/mongo/storage/collection.ts';
import { Store } from '../../../../scripts/embedded/mongo/storage/store.ts';
import { makeTempDir } from './mongo-fixture.ts';

const ordered = fc.oneof(
  fc.integer({ min: -3, max: 3 }).map((n) => new Int32(n)),
  fc.integer({ min: -3, max: 3 }).map((n) => Long.fromNumber(n)),
  fc.constantFrom(0.5, -0.5, NaN, Infinity, -Infinity, -0).map((n) => new Double(n)),
  fc.constantFrom('', 'a', 'ab', 'b', 'a\0', 'é', '😀', '\uffee'),
  fc.constantFrom<unknown>(null, true, false, new Date(0), new Date(-5)),
);
const scalar = fc.oneof(ordered, fc.constantFrom<unknown>({}, { x: new Int32(1) }));
const array = fc.array(scalar, { maxLength: 3 });
const field = fc.constantFrom('a', 'b', 'c.d');
/** Maps by field name, with the prototype of decoded documents. */
const dictionary = <T>(values: fc.Arbitrary<T>, minKeys: number, maxKeys: number) =>
  fc.dictionary(field, values, { minKeys, maxKeys, noNullPrototype: true });

const bound = fc.constantFrom('$gt', '$gte', '$lt', '$lte');
const condition = fc.oneof(
  scalar,
  fc.tuple(bound, ordered).map(([operator, operand]) => ({ [operator]: operand })),
  fc.tuple(ordered, ordered).map(([low, high]) => ({ $gte: low, $lt: high })),
  fc.array(scalar, { maxLength: 3 }).map((values) => ({ $in: values })),
  fc.boolean().map((exists) => ({ $exists: exists })),
  fc.oneof(scalar, array).map((operand) => ({ $ne: operand })),
);
const filter = fc.oneof(
  dictionary(condition, 0, 3),
  fc.array(dictionary(condition, 1, 2), { minLength: 1, maxLength: 2 }).map(($and) => ({ $and })),
);
const direction = fc.constantFrom(new Int32(1), new Int32(-1));
const sort = dictionary(direction, 0, 2);
const documents = fc.array(
  fc.record(
    { a: scalar, b: scalar, e: array, c: fc.oneof(fc.record({ d: scalar }), scalar) },
    { requiredKeys: [] },
  ),
  { maxLength: 25 },
);

test('a query has the same result with and without an index', async (t) => {
  const store = new Store(await makeTempDir(t), false, () => undefined);
  t.teardown(() => store.close());
  let collectionCount = 0;
  await fc.assert(
    fc.asyncProperty(
      documents,
      fc.array(dictionary(direction, 1, 3), { minLength: 1, maxLength: 3 }),
      fc.array(fc.record({ filter, sort }), { minLength: 5, maxLength: 5 }),
      async (documents, keys, queries) => {
        collectionCount += 1;
        const name = `c${collectionCount}`;
        const [plain, indexed] = await store.write(() => {
          const both = [
            store.ensureCollection('plain', name),
            store.ensureCollection('indexed', name),
          ] as const;
          for (const [i, key] of keys.entries()) {
            both[1].createIndex(parseIndexSpec({ key, name: `i${i}` }));
          }
          for (const [i, fields] of documents.entries()) {
            const raw = encodeDocument({ _id: new Int32(i), ...fields });
            for (const collection of both) collection.insert(decodeDocument(raw), raw);
          }
          return both;
        });
        for (const query of queries) {
          const expected = runQuery(plain, query);
          const found = runQuery(indexed, query);
          const failureMessage = JSON.stringify({ query, keys });
          t.deepEqual(idsOf(found), idsOf(expected), failureMessage);
          t.is(countMatching(indexed, { filter: query.filter }), expected.length, failureMessage);
          // A stable sort does not change the order of sorted documents, so this accepts any order of ties.
          t.deepEqual(
            found,
            sortDocuments(found, parseSort(query.sort), ({ document }) => document),
            failureMessage,
          );
        }
        await store.write(() => {
          store.dropCollection(plain);
          store.dropCollection(indexed);
        });
        t.is(store.entries.getKeysCount({}), 0, 'no entry is left behind');
      },
    ),
    { numRuns: 150 },
  );
});

function runQuery(collection: Collection, query: Query): { id: number; document: Doc }[] {
  return Array.from(prepareQuery(collection, query).run(), ({ document }) => ({
    id: (getId(document) as Int32).value,
    document,
  }));
}

const idsOf = (found: { id: number }[]) => found.map(({ id }) => id).toSorted((a, b) => a - b);

test('a numeric range is exact in the index, so documents need no check, unless the range could contain NaN', async (t) => {
  const store = new Store(await makeTempDir(t), false, () => undefined);
  t.teardown(() => store.close());
  const collection = await store.write(() => {
    const made = store.ensureCollection('db', 'rows');
    made.createIndex(parseIndexSpec({ key: { owner: new Int32(1), n: new Int32(-1) }, name: 'rows' }));
    return made;
  });
  const isExact = (n: Doc): boolean =>
    prepareQuery(collection, { filter: { owner: 'a', n } }).plan?.isExact === true;
  const [one, nine, nan] = [new Int32(1), new Double(9.5), new Double(NaN)];
  t.true(isExact({ $gte: one, $lte: nine }));
  t.true(isExact({ $gt: one }));
  t.true(isExact({ $lt: nine, $gte: Long.fromNumber(1) }));
  t.false(isExact({ $lte: nine }));
  t.false(isExact({ $gte: nan, $lte: nine }));
  t.false(isExact({ $gte: one, $lte: nan }));
  t.false(isExact({ $gte: one, $lte: 'z' }));
});

test('numbers of all types compare by their exact value', (t) => {
  const ascending = [
    new Double(-Infinity),
    Long.MIN_VALUE,
    Long.fromString('-9223372036854775807'),
    new Double(-9007199254740992),
    new Int32(-1),
    new Double(-0.5),
    new Int32(0),
    new Double(0.1),
    new Int32(1),
    new Double(9007199254740992),
    Long.fromString('9007199254740993'),
    new Double(9007199254740994),
    Long.MAX_VALUE,
    new Double(2 ** 63),
    new Double(Infinity),
  ];
  for (const [i, a] of ascending.entries()) {
    for (const [j, b] of ascending.entries())
      t.is(Math.sign(compareValues(a, b)), Math.sign(i - j), `${a.toString()} and ${b.toString()}`);
  }
  t.true(areEqual(new Double(-0), new Int32(0)));
});
