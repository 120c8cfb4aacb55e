import type { ExecutionContext, TestFn } from 'ava';
import type { MongoConnection } from '../../shared/platform/storage/mongo-client.ts';
import { openWebStores, type WebStores } from '../../shared/account-area/web-stores.ts';
import { retryUntilSuccess } from './retry-until-success.ts';
import { useMongo } from './use-mongo.ts';

export const testMasterKey = 'test-master-key-0123456789abcdef0123456789';

export interface OpenedWebStores extends WebStores {
  readonly mongo: MongoConnection;
}

/** Starts one MongoDB for the tests of a file. @returns a function that opens account area stores in a new database */
export function useWebStores(test: TestFn): (t: ExecutionContext) => Promise<OpenedWebStores> {
  const open = useUnpreparedWebStores(test);
  return async (t) => {
    const stores = open(t);
    // All tests of a file do this at the same time, which on a busy machine takes longer than a caller would wait.
    return await retryUntilSuccess('MongoDB to create the indexes', async () => {
      await stores.createIndexes();
      return stores;
    });
  };
}

/** Like `useWebStores`, with a database in which no worker has created the indexes yet. */
export function useUnpreparedWebStores(test: TestFn): (t: ExecutionContext) => OpenedWebStores {
  const openMongo = useMongo(test);
  return (t) => {
    const mongo = openMongo(t);
    return { mongo, ...openWebStores(mongo, { masterKey: testMasterKey }) };
  };
}
