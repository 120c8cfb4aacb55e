import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadConfig } from '../../../../shared/platform/config/config.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { openMongo, type MongoConnection } from '../../../../shared/platform/storage/mongo-client.ts';
import { addCredentials } from '../../../embedded/credentials.ts';
import { findRedis, redisLaunch, waitUntilRedisReady } from '../../../embedded/redis.ts';
import { findFreePort } from '../../../start/loopback.ts';
import { dist } from '../../../start/paths.ts';
import type { Program, Programs } from '../programs.ts';

interface StoresOptions {
  /** By default the folder of the programs. */
  readonly dir?: string;
  /** The Node program for MongoDB and S3; by default the one that runs this program. */
  readonly node?: string;
}

/** Redis, MongoDB and S3, initially empty, each in a separate process, and connections to the first two. */
export interface Stores {
  /** Environment for a process that uses them. */
  readonly env: NodeJS.ProcessEnv;
  readonly pids: Readonly<Record<'redis' | 'mongo' | 's3', number>>;
  readonly redis: RedisClient;
  readonly db: MongoConnection['db'];
}

export const host = '127.0.0.1';

const startTimeoutMs = 60_000;

/** Aborts what waits for a process that does not start. */
export const createStartSignal = (): AbortSignal => AbortSignal.timeout(startTimeoutMs);

/** Starts the stores. Their connections are closed before the programs stop. */
export async function startStores(programs: Programs, options: StoresOptions = {}): Promise<Stores> {
  const { dir = programs.dir, node = process.execPath } = options;
  const signal = createStartSignal();
  const base = {
    ...process.env,
    NODE_ENV: 'development',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
  const s3Keys = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: randomBytes(16).toString('hex') };
  const password = randomBytes(16).toString('hex');
  const startServer = (name: 'mongo' | 's3', env: NodeJS.ProcessEnv, input: string): Program => {
    const args = [dist(`scripts/embedded/${name}/main.js`), '--dir', join(dir, name)];
    return programs.start({ name, file: node, args, env, input, kind: 'prints-address' });
  };
  const mongoProgram = startServer('mongo', base, password);
  const s3Program = startServer('s3', { ...base, ...s3Keys }, '');
  const redisProgram = await startRedis(programs, dir, signal);
  const [mongoStartup, s3Startup] = await Promise.all([
    programs.readStartupLine(mongoProgram),
    programs.readStartupLine(s3Program),
  ]);
  const env = {
    ...base,
    ...s3Keys,
    REDIS_URL: redisProgram.url,
    MONGODB_URL: addCredentials(mongoStartup['endpoint']!, password),
    S3_ENDPOINT: s3Startup['endpoint']!,
    S3_BUCKET: 'model-gateway',
    MASTER_KEY: randomBytes(32).toString('hex'),
    DATA_DIR: dir,
  };
  const { redis, mongo } = await connect(env, signal);
  programs.beforeStop(async () => {
    redis.disconnect();
    await mongo.close();
  });
  return {
    env,
    pids: { redis: redisProgram.pid, mongo: mongoProgram.pid, s3: s3Program.pid },
    redis,
    db: mongo.db,
  };
}

async function startRedis(programs: Programs, dir: string, signal: AbortSignal) {
  const password = randomBytes(16).toString('hex');
  const port = await findFreePort();
  const redisDir = join(dir, 'redis');
  mkdirSync(redisDir, { recursive: true });
  const program = findRedis(process.env['PATH'] ?? '');
  const launch = redisLaunch({ program, port, dir: redisDir, password });
  const { pid } = programs.start({ name: 'redis', env: process.env, ...launch });
  await waitUntilRedisReady(port, password, signal);
  return { pid, url: `redis://:${password}@${host}:${port}` };
}

async function connect(env: NodeJS.ProcessEnv, signal: AbortSignal) {
  const config = loadConfig(env);
  const log = createLogger('bench', 'silent');
  const redis = createRedis(config.redisUrl, 'commands', log);
  const mongo = openMongo(config.mongodbUrl, log);
  await waitUntilReady(redis);
  // The driver stops trying to connect after two seconds, but a server that was just started may take longer.
  for (;;) {
    try {
      await mongo.db.command({ ping: 1 });
      return { redis, mongo };
    } catch (error) {
      if (signal.aborted) throw error;
    }
  }
}
