import type { Config } from '../platform/config/config.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import type { Logger } from '../platform/runtime/logger.ts';
import type { MongoConnection } from '../platform/storage/mongo-client.ts';
import { checkMongo } from './check-mongo.ts';
import { checkRedis } from './check-redis.ts';
import { checkSettings, checkVersion } from './check-settings.ts';
import type { Finding } from './finding.ts';

interface Setup {
  readonly redis: RedisClient;
  readonly mongo: MongoConnection;
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
}

/** Opening the stores reports these itself. */
const reportedElsewhere: ReadonlySet<string> = new Set(['redis eviction', 'mongodb replica set']);

/**
 * Logs a warning for each problem of the set-up that `admin doctor` would find, once, when a process starts. What can
 * fail while it runs is watched by conditions.
 */
export async function reportSetup({ redis, mongo, config, env }: Setup, log: Logger): Promise<void> {
  const unreachable = (): Finding[] => [];
  const ofStores = await Promise.all([
    checkRedis(redis).catch(unreachable),
    checkMongo(mongo.db).catch(unreachable),
  ]);
  const findings = [checkVersion(process.versions.node), ...checkSettings(config, env), ...ofStores.flat()];
  for (const { check, status, found, advice } of findings)
    if (status === 'problem' && !reportedElsewhere.has(check))
      log.warn({ check }, advice === null ? found : `${found}. ${advice}`);
}
