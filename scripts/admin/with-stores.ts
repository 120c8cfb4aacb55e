import { AccountStore } from '../../shared/accounts/account-store.ts';
import { ApiKeyStore } from '../../shared/accounts/api-key-store.ts';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { AppError } from '../../shared/contract/errors.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { locateRedis } from '../../shared/platform/redis/locate-redis-client.ts';
import { createRedis, waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { loadConfig } from '../../shared/platform/config/config.ts';
import { createLogger } from '../../shared/platform/runtime/logger.ts';
import { explainMongoError } from '../../shared/platform/storage/explain-mongo-error.ts';
import { isMongoError, isMongoUnavailable, openMongo } from '../../shared/platform/storage/mongo-client.ts';
import { openWebStores } from '../../shared/account-area/web-stores.ts';
import { CommandError, UsageError, type AdminContext } from './command.ts';

export type AdminStores = Omit<AdminContext, 'positionals' | 'options' | 'flags' | 'warn'>;

/** A person waits for a command, on a machine that may be busy: a store gets longer than for a request of a caller. */
const storeWaitMs = 5_000;

/** Connects to the stores of the running stack, or to those configured in the environment, while `use` runs. */
export async function withStores(
  env: NodeJS.ProcessEnv,
  use: (stores: AdminStores) => Promise<void>,
): Promise<void> {
  const config = loadConfig(env);
  const log = createLogger('admin', 'silent');
  const redis = createRedis(await locateRedis(config.redisUrl, storeWaitMs), 'commands', log);
  const mongo = openMongo(config.mongodbUrl, log, { serverMs: storeWaitMs });
  try {
    await waitUntilReady(redis, storeWaitMs);
    const accounts = new AccountStore(mongo.db, config);
    const ledger = new LedgerStore(mongo.db, config);
    const hotAccounts = new HotAccountStore(redis, accounts, ledger);
    const codes = new RefillCodeStore(mongo.db);
    const apiKeys = new ApiKeyStore(redis, accounts);
    const web = openWebStores(mongo, config);
    await use({ config, env, log, redis, mongo, ledger, accounts, apiKeys, hotAccounts, codes, web });
  } finally {
    await mongo.close();
    redis.disconnect();
  }
}

/** Describes a failure for the operator. Includes a stack trace only for internal errors. */
export function describeFailure(error: unknown): string {
  if (error instanceof AppError && error.code === 'service_unavailable' && !error.isExposed)
    return isMongoError(error.cause) && isMongoUnavailable(error.cause)
      ? describeFailure(error.cause)
      : `Redis or MongoDB does not respond${quote(error.cause ?? (error.message === error.kind.en ? null : error))}.`;
  if (isMongoUnavailable(error)) return `MongoDB does not respond${quote(error)}.`;
  const explanation = explainMongoError(error);
  if (explanation !== null) return explanation;
  const expected = [UsageError, CommandError, ConfigError, AppError].some((kind) => error instanceof kind);
  return expected || !(error instanceof Error) ? (error as Error).message : (error.stack ?? error.message);
}

const quote = (error: unknown): string =>
  error instanceof Error ? `: ${error.message.replace(/\.$/, '')}` : '';
