import { Double, Int32, Long } from 'bson';
import * as fc from 'fast-check';
import {
  dictionary,
  document,
  filter,
  id,
  path,
  scalar,
  simpleFilter,
  value,
  type Fields,
} from './mongo-values.ts';

const updatePath = fc.oneof(
  { weight: 30, arbitrary: path },
  { weight: 1, arbitrary: fc.constantFrom('_id', 'a..b', '') },
);
const part = <T>(operator: string, operand: fc.Arbitrary<T>) =>
  dictionary(operand, 2, updatePath).map((operands) => ({ [operator]: operands }));
const update = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: part('$set', value) },
      { weight: 3, arbitrary: part('$inc', fc.oneof({ weight: 9, arbitrary: scalar }, fc.constant('1'))) },
      { weight: 2, arbitrary: part('$min', value) },
      { weight: 2, arbitrary: part('$max', value) },
      { weight: 2, arbitrary: part('$unset', fc.constantFrom<unknown>('', true)) },
      { weight: 2, arbitrary: part('$setOnInsert', value) },
      {
        weight: 2,
        arbitrary: part(
          '$addToSet',
          fc.oneof(
            value,
            fc.array(value, { maxLength: 3 }).map(($each) => ({ $each })),
            fc.constant({ $each: new Int32(1) }),
          ),
        ),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom<Fields>({ $bogus: { a: new Int32(1) } }, { $set: new Int32(1) }),
      },
    ),
    { minLength: 1, maxLength: 3 },
  )
  .map((parts): Fields => Object.assign({}, ...parts) as Fields);

/** A filter that matches at most one document. If it matched several, an update could affect any of them. */
const filterOfOne = fc
  .tuple(simpleFilter, id)
  .map(([others, _id]): Fields => ({ ...others, _id: { $eq: _id } }));
const equality = fc.oneof(
  value,
  value.map(($eq) => ({ $eq })),
);
const upsertFilter = fc
  .tuple(dictionary(equality, 2), id, fc.boolean())
  .map(([others, _id, isPlain]): Fields => ({ ...others, _id: isPlain ? _id : { $eq: _id } }));

const isOrdered = fc.constantFrom<Fields>({}, { ordered: true }, { ordered: false });
const options = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Fields>({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Fields>(
      { maxTimeMS: new Int32(5_000) },
      { maxTimeMS: new Int32(-1) },
      { maxTimeMS: 'soon' },
      { readConcern: { level: 'majority' } },
      { readConcern: { level: 'linearizable' } },
      { readConcern: { level: 'nonsense' } },
      { writeConcern: { w: new Int32(1) } },
    ),
  },
);
const writeOptions = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Fields>({}) },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Fields>(
      { writeConcern: { w: 'majority', wtimeout: new Int32(5_000) } },
      { writeConcern: { w: new Int32(1), j: true } },
      { writeConcern: { w: new Int32(0) } },
      { readConcern: { level: 'majority' } },
      { maxTimeMS: new Int32(5_000) },
      { maxTimeMS: new Int32(-1) },
    ),
  },
);

const sort = fc
  .tuple(
    dictionary(
      fc.oneof(
        { weight: 12, arbitrary: fc.constantFrom<unknown>(new Int32(1), new Int32(-1)) },
        fc.constantFrom<unknown>(new Double(1), Long.fromNumber(-1), new Int32(0), new Int32(2), 'up'),
      ),
      2,
    ),
    fc.constantFrom(new Int32(1), new Int32(-1)),
  )
  .map(([fields, direction]): Fields => ({ ...fields, _id: direction }));
const projection = fc.oneof(
  fc.constant<Fields>({}),
  fc.dictionary(
    fc.constantFrom('_id', 'a', 'b', 'c'),
    fc.constantFrom<unknown>(new Int32(1), true, new Double(0.5)),
    {
      maxKeys: 3,
      noNullPrototype: true,
    },
  ),
  fc.constantFrom<Fields>({ _id: new Int32(0), a: new Int32(1) }, { _id: false, b: true, c: true }),
);
const pageSize = fc.oneof(
  { weight: 20, arbitrary: fc.integer({ min: 0, max: 3 }).map((n): unknown => new Int32(n)) },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(new Int32(-1), 'one', new Double(1), new Double(1.5)) },
);
const page = fc.record(
  {
    skip: pageSize,
    limit: pageSize,
    batchSize: pageSize,
    singleBatch: fc.constant(false),
  },
  { requiredKeys: [] },
);

const find = fc.oneof(
  fc.record({ filter, projection }),
  fc.tuple(fc.record({ filter, projection, sort }), page).map(([query, limits]) => ({ ...query, ...limits })),
);

/** A command without the name of its collection. */
export type Command = { name: string; body: Fields; isRetried: boolean };

const named = (name: string, body: fc.Arbitrary<Fields>, extra = writeOptions): fc.Arbitrary<Command> =>
  fc.tuple(body, extra, fc.boolean()).map(([fields, others, isRetried]) => ({
    name,
    body: { ...fields, ...others },
    isRetried: isRetried && extra === writeOptions,
  }));

const statements = <T>(field: string, statement: fc.Arbitrary<T>, maxLength: number) =>
  fc
    .tuple(fc.array(statement, { minLength: 1, maxLength }), isOrdered)
    .map(([list, ordered]): Fields => ({ [field]: list, ...ordered }));

const updateOne = fc.oneof(
  fc.record({ q: filterOfOne, u: update }),
  fc.record({ q: upsertFilter, u: update, upsert: fc.constant(true) }),
);

export const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: named('insert', statements('documents', document, 4)) },
  { weight: 4, arbitrary: named('update', statements('updates', updateOne, 3)) },
  {
    weight: 1,
    arbitrary: named(
      'update',
      fc
        .record({ q: filter, u: update, multi: fc.constant(true) })
        .map((one): Fields => ({ updates: [one] })),
    ).map((many) => ({ ...many, isRetried: false })),
  },
  {
    weight: 1,
    arbitrary: named(
      'delete',
      statements('deletes', fc.record({ q: filterOfOne, limit: fc.constant(new Int32(1)) }), 2),
    ),
  },
  {
    weight: 1,
    arbitrary: named(
      'delete',
      fc.record({ q: filter, limit: fc.constant(new Int32(0)) }).map((one): Fields => ({ deletes: [one] })),
    ).map((many) => ({ ...many, isRetried: false })),
  },
  {
    weight: 3,
    arbitrary: named(
      'findAndModify',
      fc.oneof(
        fc.record({ query: filterOfOne, update, new: fc.boolean(), fields: projection }),
        fc.record({ query: filterOfOne, remove: fc.constant(true), fields: projection }),
        fc.record({ query: filterOfOne, remove: fc.boolean(), new: fc.boolean(), update }),
      ),
    ),
  },
  { weight: 4, arbitrary: named('find', find, options) },
  {
    weight: 1,
    arbitrary: named(
      'aggregate',
      filter.map((match): Fields => {
        const count = { $group: { _id: new Int32(1), n: { $sum: new Int32(1) } } };
        return { pipeline: [{ $match: match }, count], cursor: {} };
      }),
      options,
    ),
  },
);

export const documents = fc.array(document, { maxLength: 8 });

const indexKey = fc.oneof(
  {
    weight: 30,
    arbitrary: fc.dictionary(
      fc.constantFrom('a', 'b', 'c.d'),
      fc.constantFrom<unknown>(new Int32(1), new Int32(-1), new Double(1)),
      { minKeys: 1, maxKeys: 2, noNullPrototype: true },
    ),
  },
  { weight: 1, arbitrary: fc.constant<Fields>({}) },
);
const indexSpec = fc
  .tuple(
    indexKey,
    fc.constantFrom('one', 'two', 'three', 'four', 'five'),
    fc.oneof(
      { weight: 6, arbitrary: fc.constant<Fields>({}) },
      { weight: 3, arbitrary: fc.constantFrom<Fields>({ unique: true }, { unique: false }) },
      {
        weight: 3,
        arbitrary: fc.constantFrom<Fields>(
          { partialFilterExpression: { b: new Int32(1) } },
          { partialFilterExpression: { b: 'a', a: true }, unique: true },
          { expireAfterSeconds: new Int32(1_000_000) },
          { expireAfterSeconds: new Int32(0), partialFilterExpression: { a: new Double(1) } },
        ),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom<Fields>(
          { partialFilterExpression: new Int32(1) },
          { expireAfterSeconds: new Int32(-1) },
          { expireAfterSeconds: 'soon' },
          { unique: 'yes' },
        ),
      },
    ),
  )
  .map(([key, name, rest]): Fields => ({ key, name, ...rest }));

export const createIndexes: fc.Arbitrary<Fields> = indexSpec.map((spec) => ({ indexes: [spec] }));
