import { startEmbeddedMongo } from '../../scripts/embedded/mongo/server.ts';
import { startEmbeddedS3 } from '../../scripts/embedded/s3/server.ts';
import { claimSharedRedis } from './given-redis.ts';
import { createTestBucket } from './given-s3.ts';
import { createTestDatabase } from './given-mongo.ts';
import { startRedisCluster, type RedisCluster, type RedisClusterOptions } from './redis-cluster.ts';
import { startTestRedis, type TestRedis } from './redis.ts';
import { lendRedis } from './spare-redis.ts';

/**
 * The source of test stores: `REDIS_URL`, `MONGODB_URL` and `S3_ENDPOINT` name existing servers. Stores that are not
 * set are started for the test: a redis-server (with `TEST_REDIS=cluster` a Cluster of six nodes), and the embedded
 * servers of `npm start`.
 */
export const sharedStores = {
  redisUrl: process.env['REDIS_URL'] || null,
  mongoUrl: process.env['MONGODB_URL'] || null,
  s3Endpoint: process.env['S3_ENDPOINT'] || null,
};

/** Whether each test has its own Cluster. */
export const usesCluster = sharedStores.redisUrl === null && process.env['TEST_REDIS'] === 'cluster';

/** Actions that a test may perform only on a server started for it. */
export interface OwnServer {
  /** Kills it, as in a crash. */
  kill(): Promise<void>;
  /** Restarts the server on the same port, with its data if that is persisted. */
  restart(): Promise<void>;
}

export interface OpenedStore {
  readonly url: string;
  /** Null if the server is shared with others. */
  readonly server: OwnServer | null;
  close(): Promise<void>;
}

export interface OpenedRedis extends OpenedStore {
  readonly cluster: RedisCluster | null;
}

export interface OpenRedisOptions {
  /** Where the test's own server persists its writes; without it nothing is persisted. */
  readonly dir?: string;
  /** Starts a dedicated Cluster, even if other tests use a single Redis. */
  readonly cluster?: RedisClusterOptions;
}

export async function openTestRedis({ dir, cluster }: OpenRedisOptions = {}): Promise<OpenedRedis> {
  if (cluster !== undefined || usesCluster) {
    const started = await startRedisCluster(cluster);
    return { url: started.url, server: null, cluster: started, close: () => started.close() };
  }
  if (sharedStores.redisUrl !== null) {
    const close = await claimSharedRedis(sharedStores.redisUrl);
    if (close !== null) return { url: sharedStores.redisUrl, server: null, cluster: null, close };
  }
  const options = dir === undefined ? {} : { dir };
  const lent = dir === undefined ? await lendRedis() : null;
  let server: TestRedis = lent ?? (await startTestRedis(options));
  const { url, port } = server;
  return {
    url,
    cluster: null,
    server: {
      kill: () => server.stop(),
      async restart() {
        server = await startTestRedis({ port, ...options });
      },
    },
    close: () => (server === lent ? lent.release() : server.stop()),
  };
}

export interface OpenMongoOptions {
  /** Where the test's own server stores its data. */
  readonly dir: string;
  readonly password?: string;
}

/** A dedicated database, which is deleted when it is closed. */
export async function openTestMongo({ dir, password }: OpenMongoOptions): Promise<OpenedStore> {
  if (sharedStores.mongoUrl !== null) return { server: null, ...createTestDatabase(sharedStores.mongoUrl) };
  const options = { dir, sync: false, ...(password === undefined ? {} : { password }) };
  let server: Awaited<ReturnType<typeof startEmbeddedMongo>> | null = await startEmbeddedMongo(options);
  const { url } = server;
  const kill = async (): Promise<void> => {
    await server?.close();
    server = null;
  };
  return {
    url,
    server: {
      kill,
      async restart() {
        server = await startEmbeddedMongo({ ...options, port: Number(new URL(url).port) });
      },
    },
    close: kill,
  };
}

export interface OpenedS3 {
  /** Environment variables that make a process use this bucket. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const ownCredentials = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };

/** A dedicated bucket, which is deleted when it is closed. */
export async function openTestS3(dir: string): Promise<OpenedS3> {
  if (sharedStores.s3Endpoint !== null) return createTestBucket(sharedStores.s3Endpoint);
  const server = await startEmbeddedS3({ dir, ...ownCredentials });
  return {
    env: {
      S3_ENDPOINT: server.endpoint,
      AWS_ACCESS_KEY_ID: ownCredentials.accessKeyId,
      AWS_SECRET_ACCESS_KEY: ownCredentials.secretAccessKey,
    },
    close: () => server.close(),
  };
}
