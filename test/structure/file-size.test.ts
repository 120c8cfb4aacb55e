import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const maxLines = 420;

test('no file of the product is too long to be read at once', (t) => {
  const files = ['api', 'shared', 'workers', 'scripts', 'web'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /(?<!\.d)\.(?:tsx?|css|lua|mjs)$/.test(name))
      .map((name) => join(folder, name)),
  );
  t.true(files.length > 500);
  const countLines = (file: string): number => readFileSync(join(root, file), 'utf8').split('\n').length;
  t.deepEqual(
    files.filter((file) => countLines(file) > maxLines),
    [],
  );
});
