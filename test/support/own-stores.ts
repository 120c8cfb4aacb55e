import test, { type ExecutionContext } from 'ava';
import { givenStores, wantsCluster } from './stores.ts';

export type StoreName = 'Redis' | 'MongoDB';

type Declare = (title: string, run: (t: ExecutionContext) => Promise<void>) => void;

/** Null where the store is a single server that was started for the test, which may kill it and start it again. */
function whyNotOwn(store: StoreName): string | null {
  if (store === 'MongoDB')
    return givenStores.mongoUrl === null ? null : 'MONGODB_URL names one that is not its own';
  if (givenStores.redisUrl !== null) return 'REDIS_URL names one that is not its own';
  return wantsCluster ? 'the nodes of a Cluster are killed one by one in test/real' : null;
}

/**
 * What declares a test that kills a store or starts it again. Where the store is not the test's to kill, the test is
 * skipped, and its title says why.
 * @param declare `test.serial` for one that is to run alone
 */
export function testWithOwn(store: StoreName, declare: Declare = test): Declare {
  const reason = whyNotOwn(store);
  if (reason === null) return declare;
  return (title, run) => test.skip(`${title} (skipped: it kills ${store}, and ${reason})`, run);
}

/** What declares a test that reads the order of Redis's commands: several nodes have none. */
export function testOnOneRedis(declare: Declare = test): Declare {
  if (process.env['TEST_REDIS'] !== 'cluster') return declare;
  return (title, run) => test.skip(`${title} (skipped: nodes of a Cluster have no common order)`, run);
}
