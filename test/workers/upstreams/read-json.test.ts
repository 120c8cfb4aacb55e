import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { readJson } from '../../../workers/upstreams/read-json.ts';

async function* cut(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

const read = (json: string, size = 10_000): ReturnType<typeof readJson> =>
  readJson(cut(Buffer.from(json), size), 'account');

test('small and large texts are parsed like JSON.parse parses them, wherever they are split', async (t) => {
  const pads = fc.constantFrom('', 'длинный текст 😀"\\\n'.repeat(20_000));
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }),
      pads,
      fc.integer({ min: 100, max: 1_000_000 }),
      async (value, pad, size) => {
        const json = JSON.stringify([pad, value, pad]);
        return isDeepStrictEqual(await read(json, size), { value: JSON.parse(json) as unknown });
      },
    ),
    { numRuns: 60 },
  );
  t.pass();
});

test('for an invalid, truncated or empty text, small or large, the result is null', async (t) => {
  const large = `["${'x'.repeat(2_000_000)}"]`;
  for (const json of ['', '{', 'nul', large.slice(0, -1), `${large}]`, `[1}${large}`]) {
    t.is(await read(json), null);
  }
});

test('the body of a job may be nested more deeply and have more values than a request', async (t) => {
  const deep = `${'['.repeat(150)}"${'x'.repeat(300_000)}"${']'.repeat(150)}`;
  t.deepEqual(await read(deep), { value: JSON.parse(deep) as unknown });
  const many = Array.from({ length: 250_000 }, (_, i) => i);
  t.deepEqual(await read(JSON.stringify(many)), { value: many });
});

test('other work can run while a large text is read', async (t) => {
  let turns = 0;
  const timer = setInterval(() => (turns += 1), 1);
  const value = { text: 'QUJD'.repeat(10_000_000), list: Array.from({ length: 100_000 }, (_, i) => ({ i })) };
  t.deepEqual((await read(JSON.stringify(value), 500_000))?.value, value);
  clearInterval(timer);
  t.true(turns > 5, `${turns} turns`);
});
