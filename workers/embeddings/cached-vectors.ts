import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DeliveredInput } from './deliver-vectors.ts';
import type { PendingRequest } from './embedding-work.ts';
import type { NamedVector, VectorCacheStore } from './vector-cache-store.ts';
import { createVectorNamer, type VectorSpace } from './vector-space.ts';

/** Delivers the cached vectors of a request immediately, billed as if a model had been called now. */
export async function deliverCached(
  cache: VectorCacheStore,
  space: VectorSpace,
  request: PendingRequest,
): Promise<void> {
  const { accountId, inputs } = request.task;
  const cachedVectors = await cache.read(space, inputs.map(createVectorNamer(space, accountId)));
  // If only some inputs are cached, it is not known yet whether the others will reach a model.
  if (cachedVectors.every((one) => one !== null)) request.reachedModel = true;
  for (const [i, one] of cachedVectors.entries()) {
    if (one !== null)
      request.deliver(i, {
        ...one,
        bufferRef: null,
        dimensions: space.dimensions,
        billedMs: 0,
        vendorCostNano: 0n,
      });
  }
}

/** Caches the vectors of a call, each for the account that requested it. */
export async function cacheOutcomes(
  cache: VectorCacheStore,
  space: VectorSpace,
  embedded: readonly DeliveredInput[],
): Promise<void> {
  // Respond to the callers first.
  await nextTurn();
  const namesOf = new Map<string, (text: string) => string>();
  const vectors = embedded.map(({ input: { accountId, text }, toCache }): NamedVector => {
    const nameOf = namesOf.get(accountId) ?? createVectorNamer(space, accountId);
    namesOf.set(accountId, nameOf);
    return { name: nameOf(text), ...toCache };
  });
  await cache.write(space, vectors);
}
