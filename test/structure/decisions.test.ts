import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';

const folders = ['api', 'workers', 'shared', 'scripts'];
const mention = /^(?:\/\/|--) decisions? ([\d, ]+)$/gm;

test('code names only decisions that exist', (t) => {
  const existing = new Set(readdirSync('docs/decisions').map((name) => name.slice(0, 4)));
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|lua|mjs)$/.test(name))
      .map((name) => `${folder}/${name}`),
  );
  const named = files.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(mention)].flatMap(([, list]) =>
      list!.split(', ').map((number) => ({ path, number })),
    ),
  );
  t.true(named.length > 0);
  t.deepEqual(
    named.filter(({ number }) => !existing.has(number)),
    [],
  );
});
