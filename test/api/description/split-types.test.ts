import test from 'ava';
import { addDefault, splitTypes } from '../../../api/description/split-types.ts';

test('each keyword goes to the branch of the types that it restricts', (t) => {
  const split = splitTypes({
    type: ['string', 'integer', 'array', 'object', 'null'],
    maxLength: 5,
    format: 'uuid',
    minimum: 1,
    exclusiveMinimum: 0,
    items: { type: 'string' },
    maxItems: 2,
    properties: { a: { type: 'string' } },
    required: ['a'],
  });
  t.deepEqual(split, {
    anyOf: [
      { type: 'string', maxLength: 5, format: 'uuid' },
      { type: 'integer', minimum: 1, exclusiveMinimum: 0 },
      { type: 'array', items: { type: 'string' }, maxItems: 2 },
      { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
      { type: 'null' },
    ],
  });
});

test('a list of values is split by type, and a type without values is left out', (t) => {
  const choices = { enum: [true, false, 'links', null] };
  t.deepEqual(splitTypes({ type: ['boolean', 'string', 'null'], ...choices }), {
    anyOf: [{ type: 'boolean' }, { type: 'string', enum: ['links'] }, { type: 'null' }],
  });
  t.deepEqual(splitTypes({ type: ['boolean', 'integer', 'null'], enum: [true, 1] }), {
    anyOf: [
      { type: 'boolean', enum: [true] },
      { type: 'integer', enum: [1] },
    ],
  });
});

test('a keyword that is not known to restrict one type is in every branch but null', (t) => {
  const split = splitTypes({ type: ['string', 'integer', 'null'], not: { const: 1 } } as object);
  t.deepEqual(split, {
    anyOf: [{ type: 'string', not: { const: 1 } }, { type: 'integer', not: { const: 1 } }, { type: 'null' }],
  } as object);
});

test('a default goes to the branch of its type, or beside a nullable list of values or a schema without branches', (t) => {
  const union = { anyOf: [{ type: 'integer', minimum: 1 }, { type: 'string' }, { type: 'null' }] };
  t.deepEqual(addDefault(union, 'auto'), {
    anyOf: [{ type: 'integer', minimum: 1 }, { type: 'string', default: 'auto' }, { type: 'null' }],
  });
  const nullableEnum = { anyOf: [{ type: 'string', enum: ['a', 'b'] }, { type: 'null' }] };
  t.deepEqual(addDefault(nullableEnum, 'a'), { ...nullableEnum, default: 'a' });
  t.deepEqual(addDefault({ type: 'integer' }, 1), { type: 'integer', default: 1 });
});
