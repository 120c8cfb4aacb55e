import test, { type ExecutionContext } from 'ava';
import { sharedStores, usesCluster } from './stores.ts';

export type StoreName = 'Redis' | 'MongoDB';

type Declare = (title: string, run: (t: ExecutionContext) => Promise<void>) => void;

/** Returns why a test may not kill the store, or null if the store is a single server started for the test. */
function findObstacle(store: StoreName): string | null {
  if (store === 'MongoDB') return sharedStores.mongoUrl === null ? null : 'MONGODB_URL is a shared server';
  if (sharedStores.redisUrl !== null) return 'REDIS_URL is a shared server';
  return usesCluster ? 'the nodes of a Cluster are killed one by one in test/real' : null;
}

/**
 * Declares tests that kill or restart a store. If the test may not kill it, it is skipped, with the reason in its
 * title.
 * @param declare `test.serial` for a test that must run alone
 */
export function testWithOwnStore(store: StoreName, declare: Declare = test): Declare {
  const reason = findObstacle(store);
  if (reason === null) return declare;
  return (title, run) => test.skip(`${title} (skipped: it kills ${store}, and ${reason})`, run);
}

/** Declares tests that depend on the order of all Redis commands. A Cluster has no such order, so it skips them. */
export function testOnOneRedis(declare: Declare = test): Declare {
  if (process.env['TEST_REDIS'] !== 'cluster') return declare;
  return (title, run) => test.skip(`${title} (skipped: nodes of a Cluster have no common order)`, run);
}
