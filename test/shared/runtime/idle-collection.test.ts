import test, { type ExecutionContext } from 'ava';
import { collectWhenIdle } from '../../../shared/runtime/idle-collection.ts';
import { waitFor } from '../../support/wait-for.ts';

const growthBytes = 8_000_000;

/** Serial, as the whole process is measured. */
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

test.serial('an idle process frees memory that load left behind', async (t) => {
  t.teardown(collectWhenIdle({ checkMs: 10, idleShare: Infinity, growthBytes }));
  // Old enough that only a full collection frees it.
  const garbage = new WeakRef(Array.from({ length: 1_000_000 }, (_, i) => ({ i })));
  await waitFor('the collection', () => garbage.deref() === undefined);
  t.pass();
});

test.serial('an idle process collects once, until it has grown again', async (t) => {
  const { countCollections } = startCollection(t, Infinity);
  await waitFor('the first collection', () => countCollections() === 1);
  await waitForChecks();
  t.is(countCollections(), 1);
  // More than a quarter of the memory of any test process.
  const grown = Buffer.alloc(8 * growthBytes);
  await waitFor('the second collection', () => countCollections() === 2);
  await waitForChecks();
  t.is(countCollections(), 2);
  t.is(grown.length, 8 * growthBytes);
});

test.serial('a busy process does not collect', async (t) => {
  const { countCollections } = startCollection(t, 0);
  await waitForChecks();
  t.is(countCollections(), 0);
});
