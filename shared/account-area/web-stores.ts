import type { Config } from '../platform/config/config.ts';
import type { MongoConnection } from '../platform/storage/mongo-client.ts';
import { AuditStore } from './audit-store.ts';
import { LinkStore } from './link-store.ts';
import { SessionStore } from './session-store.ts';
import { UserStore } from './user-store.ts';
import { openWebDatabase } from './web-database-store.ts';

/** The account area's stores, shared by api, workers and the admin command. */
export interface WebStores {
  readonly users: UserStore;
  readonly sessions: SessionStore;
  readonly links: LinkStore;
  readonly audit: AuditStore;
  readonly createIndexes: () => Promise<void>;
}

export function openWebStores(mongo: MongoConnection, config: Pick<Config, 'masterKey'>): WebStores {
  const database = openWebDatabase(mongo);
  return {
    users: new UserStore(database),
    sessions: new SessionStore(database, config),
    links: new LinkStore(database),
    audit: new AuditStore(database),
    createIndexes: () => database.createIndexes(),
  };
}
