import test from 'ava';
import { findSlowInputs, readsItems, readsText } from './reader.ts';

/** A busy machine hides growth from a single one. */
const attempts = 5;

/** What `Prefer` was once read by. */
const quadraticExpression = /(?:[^",;]|"(?:[^"\\]|\\.)*(?:"|$))+|[,;]/g;

test.serial('readers whose time grows with the square of their input are reported', async (t) => {
  t.timeout(300_000);
  const expression = readsItems(
    'expression',
    (text: string) => Array.from(text.matchAll(quadraticExpression)),
    { 'escaped quotes': (size) => `"${'\\"'.repeat(size / 2)}\\` },
  );
  t.is((await findSlowInputs(expression, attempts)).length, 1);
  const search = readsItems(
    'search',
    (items: readonly number[]) => items.filter((item, i) => items.indexOf(item) === i),
    { distinct: (count) => Array.from({ length: count }, (_, i) => i) },
  );
  t.is((await findSlowInputs(search, attempts)).length, 1);
  const copies = readsItems(
    'copies',
    (count: number) => {
      let list: number[] = [];
      for (let i = 0; i < count; i += 1) list = [...list, i];
      return list;
    },
    { items: (count) => count },
  );
  t.is((await findSlowInputs(copies, attempts)).length, 1);
});

test.serial('readers whose time grows with their input, or a little faster, are not reported', async (t) => {
  const sorted = readsItems(
    'sort',
    (items: readonly number[]) => items.toSorted((a, b) => a - b),
    { shuffled: (count) => Array.from({ length: count }, (_, i) => (i * 7_919) % count) },
    200_000,
  );
  t.deepEqual(await findSlowInputs(sorted), []);
  t.deepEqual(await findSlowInputs(readsText('split', (text) => text.split(','))), []);
});
