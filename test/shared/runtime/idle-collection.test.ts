import test, { type ExecutionContext } from 'ava';
import { collectWhenIdle } from '../../../shared/runtime/idle-collection.ts';
import { waitFor } from '../../support/wait-for.ts';

const growthBytes = 8_000_000;

/** Serial, as what is measured is the process. */
function useCollection(t: ExecutionContext, idleShare: number): { countCollections: () => number } {
  let collections = 0;
  const stop = collectWhenIdle({ checkMs: 10, idleShare, growthBytes, collect: () => (collections += 1) });
  t.teardown(stop);
  return { countCollections: () => collections };
}

/** Long enough for many checks. */
async function passTurns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 10));
}

test.serial('an idle process gives back what load has left', async (t) => {
  t.teardown(collectWhenIdle({ checkMs: 10, idleShare: Infinity, growthBytes }));
  // Old enough to be left to a collection of all.
  const left = new WeakRef(Array.from({ length: 1_000_000 }, (_, i) => ({ i })));
  await waitFor('the collection', () => left.deref() === undefined);
  t.pass();
});

test.serial('an idle process collects once, until it has grown again', async (t) => {
  const { countCollections } = useCollection(t, Infinity);
  await waitFor('the first collection', () => countCollections() === 1);
  await passTurns();
  t.is(countCollections(), 1);
  // More than a quarter of what any test process holds.
  const grown = Buffer.alloc(8 * growthBytes);
  await waitFor('the second collection', () => countCollections() === 2);
  await passTurns();
  t.is(countCollections(), 2);
  t.is(grown.length, 8 * growthBytes);
});

test.serial('a process that has work to do is left alone', async (t) => {
  const { countCollections } = useCollection(t, 0);
  await passTurns();
  t.is(countCollections(), 0);
});
