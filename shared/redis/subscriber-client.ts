import { Redis } from 'ioredis';
import type { Logger } from '../runtime/logger.ts';
import { ChannelConnection, type ChannelListener } from './channel-connection-client.ts';
import { readAccess, readNode, splitRedisUrls, type RedisNode } from './redis-urls.ts';

/**
 * Sharded pub/sub: a message goes through the node that has its channel's slot, so messages keep their order, and whoever
 * publishes is told how many listen. On one node it is the same as plain pub/sub, so there is one path for both.
 *
 * ioredis has sharded subscribers of its own; they do not say when messages may have been missed, nor that Redis refused a
 * subscription.
 */
export class Subscriber {
  readonly #urls: readonly string[];
  readonly #log: Logger;
  readonly #patienceMs: number;
  readonly #listeners = new Map<string, ChannelListener[]>();
  readonly #connections = new Map<string, ChannelConnection>();

  /**
   * @param urls as `createRedis` takes them
   * @param patienceMs how often Redis is asked for an answer, and how long it may take
   */
  constructor(urls: string, log: Logger, patienceMs = 5_000) {
    this.#urls = splitRedisUrls(urls);
    this.#log = log;
    this.#patienceMs = patienceMs;
  }

  /** To be called before `start`. */
  listen(channel: string, listener: ChannelListener): void {
    const listeners = this.#listeners.get(channel);
    if (listeners === undefined) this.#listeners.set(channel, [listener]);
    else listeners.push(listener);
  }

  /**
   * Resolves once Redis has taken all subscriptions; from then on they are made again whenever they are lost.
   * @throws ConfigError where Redis refuses them
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
        pingIntervalMs: this.#patienceMs,
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

  /** Whether messages of this channel come in. */
  isListening(channel: string): boolean {
    return this.#connections.get(this.#groupOf(channel))?.isListening ?? false;
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close();
  }

  /** Channels of one hash tag have one slot, which one node has. */
  #groupOf(channel: string): string {
    if (this.#urls.length === 1) return '';
    return /\{([^}]+)\}/.exec(channel)?.[1] ?? channel;
  }

  #createClient({ host, port }: RedisNode): Redis {
    const [url] = this.#urls;
    const options = {
      connectTimeout: 3_000,
      commandTimeout: this.#patienceMs,
      lazyConnect: true,
      autoResubscribe: false,
      retryStrategy: () => null,
    };
    // All that a lone URL may say, such as the family of addresses, is ioredis's to read.
    return this.#urls.length === 1
      ? new Redis(url!, options)
      : new Redis({ ...options, ...readAccess(url!), host, port });
  }
}
