import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { buildDescription } from '../../api/description/build-description.ts';
import type { JsonSchema } from '../../api/description/description.ts';
import { operations } from '../../api/contract/operations.ts';
import {
  compile,
  createClientDirectory,
  generateClient,
  generateTypes,
} from '../support/generate-clients.ts';

const document = buildDescription(Object.values(operations), 'http://gateway.test');
const text = JSON.stringify(document);
const operationIds = Object.values(operations).map(({ operationId }) => operationId);

/** Code that compiles only if every operation is there, and optional and nullable fields are. */
const usage = `
import * as client from './client.ts';
import type { components, operations } from './types.ts';

type Schemas = components['schemas'];

export const all: Record<keyof operations, true> = { ${operationIds.map((id) => `${id}: true`).join(', ')} };
export const functions: ((...values: never[]) => Promise<unknown>)[] = [
  ${operationIds.map((id) => `client.${id}`).join(', ')},
];
export const shortest: Schemas['ChatRequest'] & client.ChatRequest = {
  model: 'm',
  messages: [{ role: 'user', content: 'Hi' }],
};
export const nullable: Schemas['ChatRequest'] & client.ChatRequest = {
  ...shortest,
  temperature: null,
  stop: ['.'],
  web_search: 'no-links',
};
export const price: number | undefined = (({}) as Schemas['PricesBySize'])['1024x1024'];
export const form: Schemas['ImageEditForm']['image'] = ['the bytes'];
`;

// Serial, because the generators block the event loop.
test.serial('clients in TypeScript are generated with all operations, and compile', async (t) => {
  const directory = await createClientDirectory(t);
  const file = join(directory, 'openapi.json');
  await writeFile(file, text);
  await writeFile(join(directory, 'types.ts'), await generateTypes(text));
  await writeFile(join(directory, 'client.ts'), await generateClient(file));
  await writeFile(join(directory, 'usage.ts'), usage);
  t.is(await compile(directory), '');
});

/** Lists every object in a JSON value, with its path. */
function* listObjects(value: unknown, path = '#'): Generator<[path: string, JsonSchema]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [path, value];
  for (const [key, inner] of Object.entries(value)) {
    // Examples are data.
    if (key !== 'example' && key !== 'examples') yield* listObjects(inner, `${path}/${key}`);
  }
}

test('no schema has a list of types', (t) => {
  const found = [...listObjects(document)].filter(([, { type }]) => Array.isArray(type));
  t.deepEqual(found, []);
});

test('no array is without items, which several generators skip together with the operation', (t) => {
  const found = [...listObjects(document)].filter(([, one]) => one.type === 'array' && !('items' in one));
  t.deepEqual(found, []);
});

test('no union has a null default, a default beside several types, or null in a list of values', (t) => {
  const isBad = ({ anyOf, default: value, enum: values }: JsonSchema): boolean => {
    const types = (anyOf ?? []).filter(({ type }) => type !== 'null');
    return value === null || (value !== undefined && types.length > 1) || values?.includes(null) === true;
  };
  const found = [...listObjects(document)].filter(
    ([path, one]) => !path.endsWith('/properties') && isBad(one),
  );
  t.deepEqual(found, []);
});

/** Returns the names that occur more than once if everything but letters and digits is left out of them. */
function findCollisions(names: readonly string[]): string[] {
  const plain = names.map((name) => name.replaceAll(/[^a-z\d]/gi, '').toLowerCase());
  return names.filter((_, i) => plain.indexOf(plain[i]!) !== plain.lastIndexOf(plain[i]!));
}

test('no two fields differ only in characters that names in programs cannot have', (t) => {
  t.deepEqual(findCollisions(['image', 'image[]', 'images']), ['image', 'image[]']);
  for (const [path, { properties = {} }] of listObjects(document))
    if (!path.endsWith('/properties')) t.deepEqual(findCollisions(Object.keys(properties)), [], path);
});
