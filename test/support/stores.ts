import { startEmbeddedMongo } from '../../scripts/embedded/mongo/server.ts';
import { startEmbeddedS3 } from '../../scripts/embedded/s3/server.ts';
import { borrowGivenRedis } from './given-redis.ts';
import { useGivenBucket } from './given-s3.ts';
import { nameOwnDatabase } from './given-mongo.ts';
import { startRedisCluster, type RedisCluster, type RedisClusterOptions } from './redis-cluster.ts';
import { startTestRedis } from './redis.ts';

/**
 * Where the stores of tests come from: `REDIS_URL`, `MONGODB_URL` and `S3_ENDPOINT` name servers that are there already.
 * Each of them that is not set is started for the test: a redis-server (with `TEST_REDIS=cluster` a Cluster of six), and
 * the embedded servers of `npm start`.
 */
export const givenStores = {
  redisUrl: process.env['REDIS_URL'] || null,
  mongoUrl: process.env['MONGODB_URL'] || null,
  s3Endpoint: process.env['S3_ENDPOINT'] || null,
};

/** Whether each test has a Cluster of its own. */
export const wantsCluster = givenStores.redisUrl === null && process.env['TEST_REDIS'] === 'cluster';

/** What tests may do to a store: only to a server of their own. */
export interface OwnServer {
  /** Ends it as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on its port; with its data where it keeps them. */
  restart(): Promise<void>;
}

export interface OpenedStore {
  readonly url: string;
  /** Null where the server is one that others use as well. */
  readonly server: OwnServer | null;
  close(): Promise<void>;
}

export interface OpenedRedis extends OpenedStore {
  readonly cluster: RedisCluster | null;
}

export interface OpenRedisOptions {
  /** Where a server of the test's own keeps what it answered; nothing is kept without it. */
  readonly dir?: string;
  /** A Cluster of the test's own, whatever other tests run on. */
  readonly cluster?: RedisClusterOptions;
}

export async function openTestRedis({ dir, cluster }: OpenRedisOptions = {}): Promise<OpenedRedis> {
  if (cluster !== undefined || wantsCluster) {
    const started = await startRedisCluster(cluster);
    return { url: started.url, server: null, cluster: started, close: () => started.close() };
  }
  if (givenStores.redisUrl !== null) {
    const close = await borrowGivenRedis(givenStores.redisUrl);
    if (close !== null) return { url: givenStores.redisUrl, server: null, cluster: null, close };
  }
  const options = dir === undefined ? {} : { dir };
  let server = await startTestRedis(options);
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
    close: () => server.stop(),
  };
}

export interface OpenMongoOptions {
  /** Where a server of the test's own has its data. */
  readonly dir: string;
  readonly password?: string;
}

/** A database of the test's own, which is gone when it is closed. */
export async function openTestMongo({ dir, password }: OpenMongoOptions): Promise<OpenedStore> {
  if (givenStores.mongoUrl !== null) return { server: null, ...nameOwnDatabase(givenStores.mongoUrl) };
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
  /** What makes a process use it. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

const ownCredentials = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };

/** A bucket of the test's own, which is gone when it is closed. */
export async function openTestS3(dir: string): Promise<OpenedS3> {
  if (givenStores.s3Endpoint !== null) return useGivenBucket(givenStores.s3Endpoint);
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
