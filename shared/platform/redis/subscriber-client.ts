// decision 0059
import { Redis } from 'ioredis';
import type { Logger } from '../runtime/logger.ts';
import { ChannelConnection, type ChannelListener } from './channel-connection-client.ts';
import { readAccess, readNode, splitRedisUrls, type RedisNode } from './redis-urls.ts';

/**
 * Sharded pub/sub. A message goes through the node that owns its channel's slot, so messages keep their order and the
 * publisher learns the number of listeners. On a single node it works like plain pub/sub, so both use the same code.
 *
 * The sharded subscribers of ioredis report neither missed messages nor a rejected subscription.
 */
export class Subscriber {
  readonly #urls: readonly string[];
  readonly #log: Logger;
  readonly #timeoutMs: number;
  readonly #listeners = new Map<string, ChannelListener[]>();
  readonly #connections = new Map<string, ChannelConnection>();

  /**
   * @param urls in the form that `createRedis` accepts
   * @param timeoutMs the interval of pings to Redis, and how long a reply may take
   */
  constructor(urls: string, log: Logger, timeoutMs = 5_000) {
    this.#urls = splitRedisUrls(urls);
    this.#log = log;
    this.#timeoutMs = timeoutMs;
  }

  /** Call before `start`. */
  listen(channel: string, listener: ChannelListener): void {
    const listeners = this.#listeners.get(channel);
    if (listeners === undefined) this.#listeners.set(channel, [listener]);
    else listeners.push(listener);
  }

  /**
   * Resolves once Redis has accepted all subscriptions. They are renewed whenever they are lost.
   * @throws ConfigError if Redis rejects them
   */
  async start(): Promise<void> {
    const groups = new Map<string, Map<string, readonly ChannelListener[]>>();
    for (const [channel, listeners] of this.#listeners) {
      const group = this.#groupOf(channel);
      groups.set(group, new Map([...(groups.get(group) ?? []), [channel, listeners]]));
    }
    const started = Array.from(groups, ([group, channels]) => {
      const connection = new ChannelConnection({
        channels,
        nodes: this.#urls.map(readNode),
        createClient: (node) => this.#createClient(node),
        pingIntervalMs: this.#timeoutMs,
        log: this.#log,
      });
      this.#connections.set(group, connection);
      return new Promise<void>((resolve, reject) => {
        connection.run(resolve).then(resolve, reject);
      });
    });
    try {
      await Promise.all(started);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Whether messages of this channel are being received. */
  isListening(channel: string): boolean {
    return this.#connections.get(this.#groupOf(channel))?.isListening ?? false;
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
  }

  /** Channels with the same hash tag share a slot, which is owned by one node. */
  #groupOf(channel: string): string {
    if (this.#urls.length === 1) return '';
    return /\{([^{}]+)\}/.exec(channel)?.[1] ?? channel;
  }

  #createClient({ host, port }: RedisNode): Redis {
    const [url] = this.#urls;
    const options = {
      connectTimeout: 3_000,
      commandTimeout: this.#timeoutMs,
      lazyConnect: true,
      autoResubscribe: false,
      retryStrategy: () => null,
    };
    // ioredis itself parses the other options in a single URL, such as the address family.
    return this.#urls.length === 1
      ? new Redis(url!, options)
      : new Redis({ ...options, ...readAccess(url!), host, port });
  }
}
