import { createHash } from 'node:crypto';
import { Cluster, Redis, ReplyError, type Command } from 'ioredis';
import { AppError } from '../contract/errors.ts';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';

export type RedisClient = Redis | Cluster;

/**
 * - `commands`: shared by a whole process, pipelined by itself, fails at once while Redis is away
 * - `payloads`: likewise, for large values: nothing small waits behind them, and they are not copied into a pipeline
 * - `blocking`: waits inside Redis, so it carries nothing else
 * - `subscriber`: receives pub/sub; subscribes again by itself after a cut
 */
export type RedisPurpose = 'commands' | 'payloads' | 'blocking' | 'subscriber';

const reconnectDelayMs = (attempt: number): number => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000);

export function redisOptions(purpose: RedisPurpose) {
  const isForCommands = purpose === 'commands' || purpose === 'payloads';
  return {
    connectTimeout: 3_000,
    retryStrategy: reconnectDelayMs,
    enableAutoPipelining: purpose === 'commands',
    // A command that waited for a reconnect would answer a caller who has long gone; a caller is told at once.
    enableOfflineQueue: purpose === 'subscriber',
    maxRetriesPerRequest: isForCommands ? 0 : null,
    // An admission that is sent twice reserves twice; waiting for work again is what a blocked worker wants.
    autoResendUnfulfilledCommands: !isForCommands,
    ...(isForCommands ? { commandTimeout: 5_000 } : {}),
  };
}

/**
 * Subscribes again to all channels whenever it is connected anew. ioredis would do that by itself, but leaves the rejection
 * to nobody, which ends the process where the connection is closed before the reply; and it forgets channels of which Redis
 * refused the subscription, which leaves the process deaf. Where Redis refuses it, this client connects anew and asks again.
 */
class Subscriber extends Redis {
  readonly #log: Logger;
  readonly #channels = new Set<string>();
  readonly #watched = new WeakSet<Command>();

  constructor(url: string, options: ReturnType<typeof redisOptions>, log: Logger) {
    super(url, { ...options, autoResubscribe: false });
    this.#log = log;
    this.on('ready', () => this.#subscribeAgain());
  }

  /** A command that waits for a reconnect comes here again. */
  override sendCommand(...args: Parameters<Redis['sendCommand']>): unknown {
    const [command] = args;
    if (command.name === 'subscribe' && !this.#watched.has(command)) {
      this.#watched.add(command);
      for (const channel of command.args) this.#channels.add(String(channel));
      command.promise.catch((error: unknown) => this.#onRefused(error));
    }
    return super.sendCommand(...args);
  }

  #onRefused(error: unknown): void {
    // Closed by ourselves, or cut: then the next connection asks again.
    if (this.status !== 'ready') return;
    this.#log.error({ err: error }, 'subscribing failed; reconnecting');
    this.disconnect(true);
  }

  #subscribeAgain(): void {
    if (this.#channels.size === 0) return;
    // What becomes of it is handled where the command is sent.
    this.subscribe(...this.#channels).catch(() => undefined);
  }
}

/** One node's URL, or those of a Cluster's nodes separated by commas. */
export function createRedis(url: string, purpose: RedisPurpose, log: Logger): RedisClient {
  const nodes = url.split(',').map((node) => node.trim());
  const options = redisOptions(purpose);
  const client =
    nodes.length === 1
      ? purpose === 'subscriber'
        ? new Subscriber(nodes[0]!, options, log)
        : new Redis(nodes[0]!, options)
      : new Cluster(nodes, {
          redisOptions: options,
          enableAutoPipelining: options.enableAutoPipelining ?? false,
          enableOfflineQueue: options.enableOfflineQueue ?? false,
          clusterRetryStrategy: reconnectDelayMs,
        });
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

/** Resolves when the client can be used. @throws Error when it is not ready in time. */
export async function waitUntilReady(client: RedisClient, timeoutMs = 10_000): Promise<void> {
  if (client.status === 'ready') return;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      client.off('ready', onReady);
      reject(
        new ConfigError(
          `Redis did not answer within ${timeoutMs / 1_000} s. Does it run, and is REDIS_URL right?`,
        ),
      );
    }, timeoutMs);
    const onReady = (): void => {
      clearTimeout(timer);
      resolve();
    };
    client.once('ready', onReady);
  });
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
