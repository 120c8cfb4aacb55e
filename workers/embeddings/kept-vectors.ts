import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EmbeddedUnit } from './deliver-vectors.ts';
import type { AskUnderWay } from './embedding-work.ts';
import type { NamedVector, VectorCacheStore } from './vector-cache-store.ts';
import { createVectorNames, type VectorSpace } from './vector-space.ts';

/** What is kept of an ask's inputs is the ask's at once, billed as if it had been asked for now. */
export async function deliverKept(
  cache: VectorCacheStore,
  space: VectorSpace,
  underWay: AskUnderWay,
): Promise<void> {
  const { accountId, inputs } = underWay.ask;
  const kept = await cache.read(space, inputs.map(createVectorNames(space, accountId)));
  // An input that was found says nothing of whether those that were not will reach a model.
  if (kept.every((one) => one !== null)) underWay.reachedModel = true;
  for (const [i, one] of kept.entries()) {
    if (one !== null) underWay.deliver(i, { ...one, hold: null, dimensions: space.dimensions, billedMs: 0 });
  }
}

/** Keeps what a call brought, each vector for the account that it was asked for by. */
export async function keepOutcomes(
  cache: VectorCacheStore,
  space: VectorSpace,
  embedded: readonly EmbeddedUnit[],
): Promise<void> {
  // Whoever waits for the vectors is answered first.
  await nextTurn();
  const namesOf = new Map<string, (text: string) => string>();
  const vectors = embedded.map(({ unit: { accountId, text }, toKeep }): NamedVector => {
    const nameOf = namesOf.get(accountId) ?? createVectorNames(space, accountId);
    namesOf.set(accountId, nameOf);
    return { name: nameOf(text), ...toKeep };
  });
  await cache.write(space, vectors);
}
