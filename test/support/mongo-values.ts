import { Binary, Double, Int32, Long, ObjectId } from 'bson';
import * as fc from 'fast-check';

export type Fields = Record<string, unknown>;

const dates = [new Date(0), new Date(-5), new Date('2026-11-24T00:00:00.001Z')];
export const scalar = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -2, max: 3 }).map((n) => new Int32(n)) },
  { weight: 2, arbitrary: fc.integer({ min: -2, max: 3 }).map((n) => Long.fromNumber(n)) },
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(0.5, 1, 2, -0, NaN, Infinity, -Infinity, 2 ** 53, 2 ** 63)
      .map((n) => new Double(n)),
  },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.constantFrom(new Int32(2 ** 31 - 1), new Int32(-(2 ** 31)), Long.MAX_VALUE, Long.MIN_VALUE),
      fc.constant(Long.fromString('9007199254740993')),
    ),
  },
  { weight: 4, arbitrary: fc.constantFrom('', 'a', 'ab', 'b', 'B', 'a\0b', 'é', '😀') },
  { weight: 4, arbitrary: fc.constantFrom<unknown>(null, true, false, ...dates) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(
      new ObjectId('000000000000000000000001'),
      new ObjectId('ffffffffffffffffffffffff'),
      new Binary(Buffer.from([1, 2])),
      new Binary(Buffer.from([3]), 4),
      new Binary(Buffer.alloc(0)),
    ),
  },
);

export const leaf = fc.oneof(
  { weight: 8, arbitrary: scalar },
  { weight: 1, arbitrary: fc.record({ x: scalar, y: scalar }, { requiredKeys: [] }) },
);
export const value = fc.oneof(
  { weight: 8, arbitrary: leaf },
  { weight: 1, arbitrary: fc.array(leaf, { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.record({ d: leaf, e: leaf }, { requiredKeys: [] }) },
  { weight: 1, arbitrary: fc.array(fc.record({ d: leaf }, { requiredKeys: [] }), { maxLength: 2 }) },
);
/** Only a few ids, so that they collide. Equal numbers of different types are the same id. */
export const id = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom<unknown>(new Int32(1), new Int32(2), new Int32(3), 'x', 'y') },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(new Double(1), Long.fromNumber(2), null, { x: new Int32(1) }),
  },
  { weight: 1, arbitrary: fc.constantFrom<unknown>([new Int32(1)], new Double(NaN), dates[0]) },
);
export const path = fc.constantFrom('a', 'b', 'c', 'c.d', 'c.e', 'a.d');
export const dictionary = <T>(values: fc.Arbitrary<T>, maxKeys: number, keys: fc.Arbitrary<string> = path) =>
  fc.dictionary(keys, values, { maxKeys, noNullPrototype: true });

export const document = fc
  .tuple(
    fc.record({ _id: id }),
    fc.record({ a: value, b: value, c: value }, { requiredKeys: [] }),
    fc.boolean(),
  )
  .map(([identity, fields, isFirst]) => (isFirst ? { ...identity, ...fields } : { ...fields, ...identity }));

const condition = fc.oneof(
  { weight: 6, arbitrary: value },
  { weight: 6, arbitrary: fc.tuple(fc.constantFrom('$eq', '$ne'), value).map(asFields) },
  { weight: 6, arbitrary: fc.tuple(fc.constantFrom('$gt', '$gte', '$lt', '$lte'), leaf).map(asFields) },
  {
    weight: 3,
    arbitrary: fc.tuple(fc.constantFrom('$in', '$nin'), fc.array(value, { maxLength: 3 })).map(asFields),
  },
  { weight: 3, arbitrary: fc.record({ $gte: scalar, $lt: scalar }) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom<unknown>(true, false, new Int32(0), new Int32(1), new Double(NaN), null, 'no')
      .map(($exists) => ({ $exists })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Fields>(
      { $in: new Int32(1) },
      { $in: [{ $gt: new Int32(1) }] },
      { $nin: null },
      { $gt: new Int32(1), other: new Int32(1) },
      { $ne: new Int32(1), $exists: true },
    ),
  },
);

function asFields([name, operand]: [string, unknown]): Fields {
  return { [name]: operand };
}

export const simpleFilter = dictionary(condition, 3);
export const filter: fc.Arbitrary<Fields> = fc.oneof(
  { weight: 4, arbitrary: simpleFilter },
  {
    weight: 2,
    arbitrary: fc
      .tuple(
        fc.constantFrom('$and', '$or'),
        fc.array(simpleFilter, { minLength: 1, maxLength: 3 }),
        simpleFilter,
      )
      .map(([name, branches, others]) => ({ ...others, [name]: branches })),
  },
  { weight: 1, arbitrary: fc.record({ _id: fc.oneof(id, condition) }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Fields>({ $and: [] }, { $or: [new Int32(1)] }, { $or: new Int32(1) }),
  },
);
