import { createHash } from 'node:crypto';
import { Cluster, Redis, ReplyError } from 'ioredis';
import { AppError } from '../contract/errors.ts';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import { within } from '../runtime/within.ts';
import { ClusterClient } from './cluster-client.ts';
import { readAccess, splitRedisUrls } from './redis-urls.ts';

export type RedisClient = Redis | Cluster;

/**
 * - `commands`: shared by a whole process, pipelined by itself, fails at once while Redis is away
 * - `payloads`: likewise, for large values: nothing small waits behind them, and they are not copied into a pipeline
 * - `blocking`: waits inside Redis, so it carries nothing else
 */
export type RedisPurpose = 'commands' | 'payloads' | 'blocking';

export const reconnectDelayMs = (attempt: number): number => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000);

export function redisOptions(purpose: RedisPurpose) {
  const isForCommands = purpose === 'commands' || purpose === 'payloads';
  return {
    connectTimeout: 3_000,
    retryStrategy: reconnectDelayMs,
    enableAutoPipelining: purpose === 'commands',
    // A command that waited for a reconnect would answer a caller who has long gone; a caller is told at once.
    enableOfflineQueue: false,
    maxRetriesPerRequest: isForCommands ? 0 : null,
    // An admission that is sent twice reserves twice; waiting for work again is what a blocked worker wants.
    autoResendUnfulfilledCommands: !isForCommands,
    ...(isForCommands ? { commandTimeout: 5_000 } : {}),
  };
}

/** @param urls of one node, or of those of a Cluster, separated by commas */
export function createRedis(urls: string, purpose: RedisPurpose, log: Logger): RedisClient {
  const nodes = splitRedisUrls(urls);
  const options = redisOptions(purpose);
  const client = nodes.length === 1 ? new Redis(nodes[0]!, options) : createCluster(nodes, options);
  let away = false;
  client.on('error', (error: Error) => {
    // ioredis repeats the error at every attempt; once an outage is enough.
    if (!away) log.warn({ purpose, reason: error.message }, 'Redis is away; reconnecting');
    away = true;
  });
  client.on('ready', () => {
    if (away) log.info({ purpose }, 'Redis is back');
    away = false;
  });
  return client;
}

function createCluster(nodes: string[], options: ReturnType<typeof redisOptions>): Cluster {
  return new ClusterClient(nodes, {
    // Nodes that others tell of are reached as the first one is.
    redisOptions: { ...options, ...readAccess(nodes[0]!) },
    // By name, where there are names: certificates are made out to them.
    dnsLookup: (address, callback) => callback(null, address),
    enableAutoPipelining: options.enableAutoPipelining,
    enableOfflineQueue: options.enableOfflineQueue,
    clusterRetryStrategy: reconnectDelayMs,
    // Else what was under way when a connection was cut is sent again.
    ...(options.autoResendUnfulfilledCommands ? {} : { retryDelayOnFailover: 0 }),
  });
}

/** Resolves when the client can be used. @throws Error when it is not ready in time. */
export async function waitUntilReady(client: RedisClient, timeoutMs = 10_000): Promise<void> {
  const ready = new Promise<void>((resolve) => {
    if (client.status === 'ready') resolve();
    else client.once('ready', resolve);
  });
  const allReady = async (): Promise<void> => {
    await ready;
    // A Cluster is ready before the connections to its nodes are. A node that is down is not waited for.
    if (client instanceof Cluster)
      await Promise.allSettled(client.nodes('master').map((node) => node.ping()));
  };
  await within(timeoutMs, allReady(), () => {
    throw new ConfigError(
      `Redis did not answer within ${timeoutMs / 1_000} s. Does it run, and is REDIS_URL right?`,
    );
  });
}

/**
 * How many listen to a channel of sharded pub/sub, as the owner of its slot counts them. What SPUBLISH returns is wrong for a
 * moment after a failover: it is accepted by the old master, which is a replica by now, and whose count is 0.
 */
export async function countListeners(redis: RedisClient, channel: string): Promise<number> {
  // A replica redirects this, and so the client learns who the owner is.
  await redis.exists(channel);
  return (await redis.spublish(channel, '')) as number;
}

/** Reply codes by which Redis says that it cannot serve now, rather than that the command is wrong. */
const awayCodes = new Set([
  'LOADING',
  'BUSY',
  'READONLY',
  'MASTERDOWN',
  'CLUSTERDOWN',
  'TRYAGAIN',
  'OOM',
  'MISCONF',
  'NOREPLICAS',
  // Its slot is on another node, since a moment ago.
  'MOVED',
  'ASK',
]);

/** The first word of an error reply is its code. */
export function replyCode(error: unknown): string | null {
  return error instanceof Error && (error instanceof ReplyError || error.name === 'ReplyError')
    ? (error.message.split(' ', 1)[0] ?? null)
    : null;
}

/** Whether a failure means that Redis is away, as against a command of ours being wrong. */
export function isRedisAway(error: unknown): boolean {
  const code = replyCode(error);
  return code === null || awayCodes.has(code);
}

/** Runs commands; an outage of Redis becomes `service_unavailable`. */
export async function callRedis<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof AppError || !isRedisAway(error)) throw error;
    throw new AppError('service_unavailable', { cause: error });
  }
}

type ScriptArgument = string | number | Buffer;

/** A Lua text that runs by its hash and loads itself where Redis does not know it yet. */
export class RedisScript {
  readonly #text: string;
  readonly #sha: string;

  constructor(text: string) {
    this.#text = text;
    this.#sha = createHash('sha1').update(text).digest('hex');
  }

  async run(redis: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    try {
      return await redis.evalsha(this.#sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (replyCode(error) !== 'NOSCRIPT') throw error;
      return await redis.eval(this.#text, keys.length, ...keys, ...args);
    }
  }

  /** As `run`, but sends the text at once: runs of one connection happen in the order in which they were asked for. */
  async runInOrder(
    redis: RedisClient,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<unknown> {
    return await redis.eval(this.#text, keys.length, ...keys, ...args);
  }
}
