// Has its own process: it measures the memory of its process.
import { getHeapStatistics } from 'node:v8';
import test, { type ExecutionContext } from 'ava';
import { collectWhenIdle, findCollector } from '../../../../shared/platform/runtime/idle-collection.ts';
import { waitFor } from '../../../support/wait-for.ts';

const growthBytes = 8_000_000;

/** These tests are serial, because they measure the memory of the whole process. */
function startCollection(t: ExecutionContext, idleShare: number): { countCollections: () => number } {
  let collections = 0;
  const stop = collectWhenIdle({ checkMs: 10, idleShare, growthBytes, collect: () => (collections += 1) });
  t.teardown(stop);
  return { countCollections: () => collections };
}

/** Long enough for many checks. */
async function waitForChecks(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 10));
}

test.serial('an idle process frees the garbage that was created under load', async (t) => {
  t.teardown(collectWhenIdle({ checkMs: 10, idleShare: Infinity, growthBytes }));
  // By now the garbage is in the old generation, so only a full collection frees it.
  const garbage = new WeakRef(Array.from({ length: 1_000_000 }, (_, i) => ({ i })));
  await waitFor('the collection', () => garbage.deref() === undefined);
  t.pass();
});

test.serial('memory in which few objects survive is given back', async (t) => {
  const collectGarbage = findCollector();
  let collections = 0;
  const collect = (): void => {
    collections++;
    collectGarbage();
  };
  t.teardown(collectWhenIdle({ checkMs: 10, idleShare: Infinity, growthBytes, collect }));
  let all: object[] = Array.from({ length: 2_000_000 }, (_, i) => ({ i, nested: { i } }));
  const occupiedMb = () => getHeapStatistics().total_heap_size / 1_000_000;
  await waitFor('the objects to be in the old generation', () => occupiedMb() > 100);
  const fullMb = occupiedMb();
  // Every tenth, from each page of memory. One collection releases about a third, and leaves pages of survivors.
  const survivors = all.filter((_, i) => i % 10 === 0);
  all = [];
  await waitFor(
    () => `the memory to be released: ${occupiedMb()} MB, initially ${fullMb} MB`,
    () => occupiedMb() < 0.65 * fullMb,
  );
  // V8 would do it too, but only after most of a minute.
  t.true(collections > 1, `${collections} collections`);
  t.is(survivors.length, 200_000);
});

test.serial('an idle process collects garbage once, and again only after its memory has grown', async (t) => {
  const { countCollections } = startCollection(t, Infinity);
  await waitFor('the first collection', () => countCollections() === 1);
  await waitForChecks();
  t.is(countCollections(), 1);
  // More than a quarter of the memory that a test process uses.
  const grown = Buffer.alloc(8 * growthBytes);
  await waitFor('the second collection', () => countCollections() === 2);
  await waitForChecks();
  t.is(countCollections(), 2);
  t.is(grown.length, 8 * growthBytes);
});

test.serial('a busy process does not collect garbage', async (t) => {
  const { countCollections } = startCollection(t, 0);
  await waitForChecks();
  t.is(countCollections(), 0);
});
