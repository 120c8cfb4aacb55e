import test from 'ava';
import Type, { type TSchema } from 'typebox';
import { listFields, type Schemas } from '../../../../api/pages/docs/list-fields.ts';
import { Nullable, StringEnum } from '../../../../shared/contract/fields.ts';

const schemas: Schemas = {
  Thing: Type.Object({ id: Type.String({ description: 'Its id.' }) }),
};
const reference = { $ref: '#/components/schemas/Thing' };

test('a field shows its type, whether it is required, its default, bounds and choices', (t) => {
  const schema: TSchema = Type.Object({
    size: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
    kind: Nullable(StringEnum(['a', 'b'])),
    code: Type.String({ minLength: 1, maxLength: 32 }),
    day: Type.String({ format: 'date' }),
    page: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  });
  const [size, kind, code, day, page] = listFields(schema, schemas);
  t.like(size, { name: 'size', type: 'integer', required: false, default: '20', bounds: '1 to 100' });
  t.like(kind, { type: 'string or null', required: true, choices: ['"a"', '"b"', 'null'], default: null });
  t.is(code?.bounds, '1 to 32 characters');
  t.is(day?.bounds, 'YYYY-MM-DD');
  t.is(page?.bounds, 'at least 1');
});

test('a nullable field shows the default, bounds and choices of its other type, and alternatives show theirs', (t) => {
  const none = { type: 'null' };
  const [count, kind, search, list] = listFields(
    {
      properties: {
        count: { anyOf: [{ type: 'integer', minimum: 1, maximum: 4, default: 1 }, none] },
        kind: { anyOf: [{ type: 'string', enum: ['a', 'b'] }, none], default: 'a' },
        search: { anyOf: [{ type: 'boolean' }, { type: 'string', enum: ['on'] }, none] },
        list: { anyOf: [{ type: 'string', default: '' }, { type: 'array', items: {} }, none] },
      },
    },
    schemas,
  );
  t.like(count, { type: 'integer or null', default: '1', bounds: '1 to 4' });
  t.like(kind, { type: 'string or null', default: '"a"', choices: ['"a"', '"b"'] });
  t.like(search, { type: 'boolean or string or null', choices: ['"on"'] });
  t.like(list, { type: 'string or array or null', default: '""' });
});

test('the fields of objects are found through references, in lists and maps, and among alternatives', (t) => {
  const [one, list, map, either] = listFields(
    {
      properties: {
        one: reference,
        list: { type: 'array', items: reference },
        map: { type: 'object', additionalProperties: reference },
        either: { anyOf: [{ type: 'string' }, { type: 'array', items: reference }, { type: 'null' }] },
      },
    },
    schemas,
  );
  for (const field of [one, list, map, either]) t.is(field?.fields[0]?.description, 'Its id.');
  t.deepEqual([one?.path, list?.path, map?.path, either?.path], ['one', 'list[]', 'map{}', 'either[]']);
  t.deepEqual(
    [one?.type, list?.type, either?.type],
    ['object', 'array of object', 'string or array of object or null'],
  );
});

test('a list of objects shows the fields of its objects', (t) => {
  t.deepEqual(
    listFields({ type: 'array', items: reference }, schemas).map((field) => field.name),
    ['id'],
  );
});
