import type { ExecutionContext, TestFn } from 'ava';
import type { MongoConnection } from '../../shared/storage/mongo-client.ts';
import { openWebStores, type WebStores } from '../../shared/web/web-stores.ts';
import { useMongo } from './use-mongo.ts';

export const testMasterKey = 'test-master-key-0123456789abcdef0123456789';

export interface OpenedWebStores extends WebStores {
  readonly mongo: MongoConnection;
}

/** One MongoDB for the tests of a file. @returns what opens the stores of the account area over a database of its own */
export function useWebStores(test: TestFn): (t: ExecutionContext) => Promise<OpenedWebStores> {
  const open = useUnpreparedWebStores(test);
  return async (t) => {
    const stores = open(t);
    await stores.createIndexes();
    return stores;
  };
}

/** The same of a database that no worker has prepared. */
export function useUnpreparedWebStores(test: TestFn): (t: ExecutionContext) => OpenedWebStores {
  const openMongo = useMongo(test);
  return (t) => {
    const mongo = openMongo(t);
    return { mongo, ...openWebStores(mongo, { masterKey: testMasterKey }) };
  };
}
