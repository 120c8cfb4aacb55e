import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { AppError } from '../../contract/errors.ts';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import { within } from '../runtime/within.ts';
import { BullmqClient } from './bullmq-client.ts';
import { ClusterClient } from './cluster-client.ts';
import { CorkingClient } from './corking-client.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';
import { readAccess, splitRedisUrls } from './redis-urls.ts';
import { replyCode } from './reply-code.ts';

export type RedisClient = Redis | Cluster;

/**
 * - `commands`: shared by the whole process; the commands of one event loop turn are written together; fails immediately
 *   while Redis is unavailable
 * - `payloads`: like `commands`, for large values, so that small ones do not wait behind them; written immediately
 * - `blocking`: for commands that block for up to a second; no other commands use it
 * - `bullmq`: for a BullMQ worker, which waits for work on a duplicate of it
 */
export type RedisPurpose = 'commands' | 'payloads' | 'blocking' | 'bullmq';

const commandTimeoutMs = 5_000;

/**
 * A connection that receives nothing for this long while a reply is expected is replaced. A host that lost power or a
 * network that drops packets does not close connections. BullMQ's locks last 10 s, and the worker must reconnect before
 * they expire.
 */
const silenceMs: Readonly<Record<RedisPurpose, number>> = {
  commands: commandTimeoutMs + 1_000,
  payloads: commandTimeoutMs + 1_000,
  blocking: 5_000,
  bullmq: 5_000,
};

function redisOptions(purpose: RedisPurpose) {
  const isForCommands = purpose === 'commands' || purpose === 'payloads';
  return {
    connectTimeout: 3_000,
    socketTimeout: silenceMs[purpose],
    retryStrategy: reconnectDelayMs,
    // Fail immediately: by the time of a reconnect, the caller has long disconnected.
    enableOfflineQueue: false,
    maxRetriesPerRequest: isForCommands ? 0 : null,
    // An admission sent twice would reserve twice. Only a worker's blocking wait for work may be sent again.
    autoResendUnfulfilledCommands: !isForCommands,
    ...(isForCommands ? { commandTimeout: commandTimeoutMs } : {}),
  };
}

/** @param urls one server or the nodes of a Cluster, separated by commas */
export function createRedis(urls: string, purpose: RedisPurpose, log: Logger): RedisClient {
  const nodes = splitRedisUrls(urls);
  const options = redisOptions(purpose);
  const client =
    nodes.length === 1
      ? createStandalone(nodes[0]!, purpose, options)
      : createCluster(nodes, purpose, options);
  let isUnavailable = false;
  client.on('error', (error: Error) => {
    // ioredis repeats the error at every attempt. Log it once per outage.
    if (!isUnavailable) log.warn({ purpose, reason: error.message }, 'Redis unavailable; reconnecting');
    isUnavailable = true;
  });
  client.on('ready', () => {
    if (isUnavailable) log.info({ purpose }, 'Redis available again');
    isUnavailable = false;
  });
  return client;
}

const clients = {
  commands: CorkingClient,
  payloads: Redis,
  blocking: Redis,
  bullmq: BullmqClient,
} as const satisfies Record<RedisPurpose, unknown>;

function createStandalone(
  url: string,
  purpose: RedisPurpose,
  options: ReturnType<typeof redisOptions>,
): Redis {
  const Client: new (url: string, options: RedisOptions) => Redis = clients[purpose];
  return new Client(url, {
    ...options,
    // The server became a replica without closing its connections. Its name may resolve to the new master by now.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY '),
  });
}

function createCluster(
  nodes: string[],
  purpose: RedisPurpose,
  options: ReturnType<typeof redisOptions>,
): Cluster {
  return new ClusterClient(nodes, {
    // Nodes learned from other nodes are accessed like the first one.
    redisOptions: { ...options, ...readAccess(nodes[0]!) },
    // The check may query a node whose connection is not ready yet, treat that as a failure and start over.
    enableReadyCheck: false,
    // Do not resolve host names, because TLS certificates are issued for them.
    dnsLookup: (address, callback) => callback(null, address),
    // Without this, each command of a Cluster is written alone.
    enableAutoPipelining: purpose === 'commands',
    enableOfflineQueue: options.enableOfflineQueue,
    clusterRetryStrategy: reconnectDelayMs,
    // By default, ioredis resends the commands in flight when a connection is lost.
    ...(options.autoResendUnfulfilledCommands ? {} : { retryDelayOnFailover: 0 }),
  });
}

/** Resolves when the client can be used. @throws ConfigError if it is not ready in time */
export async function waitUntilReady(client: RedisClient, timeoutMs = 10_000): Promise<void> {
  const ready = new Promise<void>((resolve) => {
    if (client.status === 'ready') resolve();
    else client.once('ready', resolve);
  });
  const allReady = async (): Promise<void> => {
    await ready;
    // A Cluster client is ready before the connections to its nodes are. Do not wait for a node that is down.
    if (client instanceof Cluster)
      await Promise.allSettled(client.nodes('master').map((node) => node.ping()));
  };
  await within(timeoutMs, allReady(), () => {
    throw new ConfigError(
      `Redis did not respond within ${timeoutMs / 1_000} s. Check that it is running and that REDIS_URL is correct.`,
    );
  });
}

/**
 * Returns how many subscribers a sharded channel has, as counted by the owner of its slot. The count from SPUBLISH is
 * wrong for a moment after a failover: the old master, now a replica, still accepts it and counts 0.
 */
export async function countSubscribers(redis: RedisClient, channel: string): Promise<number> {
  // A replica redirects this command, so the client learns who the owner is.
  await redis.exists(channel);
  return (await redis.spublish(channel, '')) as number;
}

/** Reply codes that mean that Redis is unavailable. Any other code means that the command is wrong. */
const unavailableCodes = new Set([
  'LOADING',
  'BUSY',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'OOM',
  'MISCONF',
  'NOREPLICAS',
  // A master that becomes a replica fails its blocked commands with this code.
  'UNBLOCKED',
  // The slot has just moved to another node.
  'MOVED',
  'ASK',
]);

/** Whether a failure means that Redis is unavailable. Otherwise our command is wrong. */
export function isRedisUnavailable(error: unknown): boolean {
  const code = replyCode(error);
  return code === null || unavailableCodes.has(code);
}

/** Runs commands. @throws AppError `service_unavailable` if Redis is unavailable */
export async function callRedis<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof AppError || !isRedisUnavailable(error)) throw error;
    throw new AppError('service_unavailable', { cause: error });
  }
}
