import { Ajv2020 } from 'ajv/dist/2020.js';
import test from 'ava';
import { sampleOfSchema } from '../../../shared/encoding/sample-of-schema.ts';

const person = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 12, maxLength: 14 },
    age: { type: 'integer', minimum: 18 },
    score: { type: 'number', exclusiveMaximum: 0 },
    email: { type: ['string', 'null'] },
    kind: { enum: ['adult', 'child'] },
    tags: { type: 'array', items: { type: 'string' }, minItems: 2 },
    parent: { anyOf: [{ type: 'null' }, { $ref: '#' }] },
    address: { $ref: '#/$defs/address' },
  },
  required: ['name', 'age', 'score', 'email', 'kind', 'tags', 'parent', 'address'],
  additionalProperties: false,
  $defs: { address: { type: 'object', properties: { zip: { const: 7 } }, required: ['zip'] } },
};

test('a sample matches its schema', (t) => {
  const sample = sampleOfSchema(person, 'Hello');
  t.true(new Ajv2020({ strict: false }).validate(person, sample));
  t.like(sample, { name: 'Hello.......', kind: 'adult', address: { zip: 7 } });
});

test('a schema that refers to itself, or asks for much, has a bounded sample', (t) => {
  const branching = {
    type: 'object',
    properties: { a: { $ref: '#' }, b: { $ref: '#' }, c: { $ref: '#' } },
    required: ['a', 'b', 'c'],
  };
  const repeated = { type: 'array', items: { const: 'x'.repeat(30_000) }, minItems: 1e9 };
  const nested = { type: 'array', minItems: 1e9, items: { type: 'array', minItems: 1e9, items: branching } };
  for (const schema of [branching, repeated, nested])
    t.true(JSON.stringify(sampleOfSchema(schema, 'Hello')).length < 200_000);
  t.deepEqual(sampleOfSchema({ $ref: '#/nowhere' }, ''), {});
});
