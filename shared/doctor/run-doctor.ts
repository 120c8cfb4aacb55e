import type { AuditTrail } from '../admin/audit-trail.ts';
import { CatalogStore } from '../catalog/catalog-store.ts';
import { loadConfig, type Config } from '../platform/config/config.ts';
import { locateRedis } from '../platform/redis/locate-redis-client.ts';
import { createRedis, waitUntilReady } from '../platform/redis/redis-client.ts';
import { createLogger } from '../platform/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../platform/storage/mongo-client.ts';
import { ObjectStore } from '../platform/storage/object-store.ts';
import { checkBucket } from './check-bucket.ts';
import { checkCatalog } from './check-catalog.ts';
import { checkMail } from './check-mail.ts';
import { checkMongo } from './check-mongo.ts';
import { checkProcesses } from './check-processes.ts';
import { checkRedis } from './check-redis.ts';
import { checkSettings, checkVersion } from './check-settings.ts';
import { checkUpstreams } from './check-upstreams.ts';
import { ok, problem, runCheck, type Finding } from './finding.ts';

const connectMs = 5_000;
const silent = createLogger('doctor', 'silent');

/** Opens the audit log, in which calls to upstreams are recorded. */
export type OpenTrail = (stores: { readonly mongo: MongoConnection }) => AuditTrail;

/**
 * Checks everything that the gateway needs, with connections of its own, and whatever of it fails. Never throws.
 * @param openTrail also calls each upstream once with each key, which costs a little; null for not
 * @returns findings, in the order in which one would mend them
 */
export async function runDoctor(
  env: NodeJS.ProcessEnv,
  openTrail: OpenTrail | null = null,
): Promise<Finding[]> {
  const version = checkVersion(process.versions.node);
  let config: Config;
  try {
    config = loadConfig(env);
  } catch (error) {
    return [version, problem('settings', (error as Error).message, 'Correct the variables (README).')];
  }
  const parts = await Promise.all([
    checkRedisAndCatalog(config, env, openTrail),
    runCheck('mongodb', 'Start MongoDB, or correct MONGODB_URL (docs/deployment.md).', async () => {
      const mongo = openMongo(config.mongodbUrl, silent);
      try {
        return await checkMongo(mongo.db);
      } finally {
        await mongo.close();
      }
    }),
    runCheck(
      'bucket',
      'Correct S3_ENDPOINT, S3_BUCKET or the rights (docs/deployment.md).',
      async (signal) => {
        const objects = new ObjectStore(config.s3);
        return await checkBucket(objects, signal).finally(() => objects.close());
      },
    ),
    runCheck('mail', 'Correct SMTP_URL (docs/mail.md).', () => checkMail(config)),
  ]);
  return [version, ...checkSettings(config, env), ...parts.flat()];
}

async function checkRedisAndCatalog(
  config: Config,
  env: NodeJS.ProcessEnv,
  openTrail: OpenTrail | null,
): Promise<readonly Finding[]> {
  const { redisUrl, catalogPath: path } = config;
  const located = await locateRedis(redisUrl, connectMs).catch((error: unknown) => error as Error);
  const redis = createRedis(typeof located === 'string' ? located : redisUrl, 'commands', silent);
  // Both checks wait for it: a command before that would fail, and be taken for a fault of the catalog.
  const failure =
    typeof located === 'string'
      ? waitUntilReady(redis, connectMs).then(
          () => null,
          (error: unknown) => error,
        )
      : Promise.resolve<unknown>(located);
  let catalog: CatalogStore | null = null;
  try {
    const ofRedis = runCheck('redis', 'Start Redis, or correct REDIS_URL (docs/deployment.md).', async () => {
      const error = await failure;
      if (error !== null) throw error;
      return await checkRedis(redis);
    });
    const ofCatalog = runCheck('catalog', 'Correct the file (docs/catalog.md).', async () => {
      catalog = await CatalogStore.open({ path, env, redis, log: silent });
      // Which models and routes can be called is in Redis.
      if ((await failure) !== null) return [ok('catalog', `${catalog.current.models.length} models`)];
      return [...(await checkCatalog(redis, catalog)), ...(await checkProcesses(redis, catalog, config))];
    });
    const findings = [...(await ofRedis), ...(await ofCatalog)];
    if (openTrail !== null && (await failure) === null && catalog !== null) {
      const mongo = openMongo(config.mongodbUrl, silent);
      try {
        findings.push(...(await checkUpstreams(redis, catalog, openTrail({ mongo }))));
      } finally {
        await mongo.close();
      }
    }
    return findings;
  } finally {
    (catalog as CatalogStore | null)?.close();
    redis.disconnect();
  }
}
