import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { addCredentials } from '../embedded/credentials.ts';
import { findRedis, redisLaunch, waitUntilRedisReady } from '../embedded/redis.ts';
import { findFreePort } from '../start/loopback.ts';
import { dist } from '../start/paths.ts';
import type { Program, Programs } from './programs.ts';

export interface StoresOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  /** The Node program for MongoDB and S3; by default the one that runs this program. */
  readonly node?: string;
}

/** Redis, MongoDB and S3 for one bench, initially empty, each in a separate process. */
export interface Stores {
  /** Environment for a process that uses them. */
  readonly env: NodeJS.ProcessEnv;
  readonly pids: Readonly<Record<'redis' | 'mongo', number>>;
}

const host = '127.0.0.1';

export async function startStores(options: StoresOptions): Promise<Stores> {
  const { programs, dir, node = process.execPath } = options;
  const base = {
    ...options.env,
    NODE_ENV: 'development',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
  const s3Keys = { AWS_ACCESS_KEY_ID: 'bench', AWS_SECRET_ACCESS_KEY: randomBytes(16).toString('hex') };
  const env = { ...base, ...s3Keys };
  const password = randomBytes(16).toString('hex');
  const mongo = startServer(programs, node, { name: 'mongo', dir, env: base, input: password });
  const s3 = startServer(programs, node, { name: 's3', dir, env, input: '' });
  const redis = await startRedis(options);
  const [mongoStartup, s3Startup] = await Promise.all([
    programs.readStartupLine(mongo),
    programs.readStartupLine(s3),
  ]);
  return {
    env: {
      ...env,
      REDIS_URL: redis.url,
      MONGODB_URL: addCredentials(mongoStartup['endpoint']!, password),
      S3_ENDPOINT: s3Startup['endpoint']!,
      S3_BUCKET: 'model-gateway',
      MASTER_KEY: randomBytes(32).toString('hex'),
      DATA_DIR: dir,
    },
    pids: { redis: redis.pid, mongo: mongo.pid },
  };
}

function startServer(
  programs: Programs,
  node: string,
  { name, dir, env, input }: { name: 'mongo' | 's3'; dir: string; env: NodeJS.ProcessEnv; input: string },
): Program {
  const script = dist(`scripts/embedded/${name}/main.js`);
  const args = [script, '--dir', join(dir, name)];
  return programs.start({ name, file: node, args, env, input, kind: 'prints-address' });
}

async function startRedis({ programs, dir, env, signal }: StoresOptions) {
  const password = randomBytes(16).toString('hex');
  const port = await findFreePort();
  const redisDir = join(dir, 'redis');
  mkdirSync(redisDir, { recursive: true });
  const launch = redisLaunch({ program: findRedis(env['PATH'] ?? ''), port, dir: redisDir, password });
  const { pid } = programs.start({ name: 'redis', env, ...launch });
  await waitUntilRedisReady(port, password, signal);
  return { pid, url: `redis://:${password}@${host}:${port}` };
}
