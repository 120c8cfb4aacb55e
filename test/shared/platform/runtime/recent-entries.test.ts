import test from 'ava';
import { createRecentEntries } from '../../../../shared/platform/runtime/recent-entries.ts';

test('the entries used last are kept, up to the maximum', (t) => {
  const entries = createRecentEntries<string, number>(2);
  entries.set('a', 1).set('b', 2);
  t.is(entries.get('a'), 1);
  entries.set('c', 3);
  t.deepEqual([...entries.keys()].toSorted(), ['a', 'c']);
  t.is(entries.get('b'), undefined);
});

test('an entry older than its time to live is gone', async (t) => {
  const entries = createRecentEntries<string, number>(10, 5);
  entries.set('a', 1);
  const setAtMs = performance.now();
  while (performance.now() - setAtMs < 8) await new Promise(setImmediate);
  t.is(entries.get('a'), undefined);
});
