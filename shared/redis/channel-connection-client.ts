import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import { isRedisAway, reconnectDelayMs, replyCode } from './redis-client.ts';
import type { RedisNode } from './redis-urls.ts';

/** What comes on a channel, and what may have been missed. */
export interface ChannelListener {
  readonly onMessage: (message: Buffer) => void;
  /** From now on messages are missed. */
  readonly onLost?: () => void;
  /** Messages come again; those since the loss have been missed. */
  readonly onRestored?: () => void;
}

export interface ChannelConnectionOptions {
  /** The listeners of all channels: of one slot, where there is a Cluster. */
  readonly channels: ReadonlyMap<string, readonly ChannelListener[]>;
  /** Where to ask, in turn; each node of a Cluster knows which one has the channels. */
  readonly nodes: readonly RedisNode[];
  /** A client that does not connect before it is told to, and never again by itself. */
  readonly createClient: (node: RedisNode) => Redis;
  /** How often an answer is asked for: a network that drops packets closes nothing. */
  readonly pingIntervalMs: number;
  readonly log: Logger;
}

/** A node that knows nothing of its neighbours yet may send a client round in circles. */
const maxRedirects = 5;

/**
 * One connection to the node that has the channels. Whenever it ends, or the channels move to another node, the listeners
 * are told, and another one is made.
 */
export class ChannelConnection {
  readonly #options: ChannelConnectionOptions;
  readonly #closing = new AbortController();
  #client: Redis | null = null;
  #isListening = false;
  #hasListened = false;
  /** What was logged of this outage: once each is enough. */
  readonly #complaints = new Set<'cut' | 'refused'>();

  constructor(options: ChannelConnectionOptions) {
    this.#options = options;
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  /**
   * Listens until it is closed. Calls `onFirst` once Redis has taken the subscriptions.
   * @throws ConfigError where Redis refuses the first one for good
   */
  async run(onFirst: () => void): Promise<void> {
    const { nodes } = this.#options;
    let node = nodes[0]!;
    let failures = 0;
    let redirects = 0;
    while (!this.#closing.signal.aborted) {
      const end = await this.#listen(node, onFirst);
      if (end.wasListening) failures = redirects = 0;
      const moved = readMoved(end.error, node);
      if (moved !== null && redirects < maxRedirects) {
        node = moved;
        redirects += 1;
        continue;
      }
      this.#complain(end.error);
      // After a cut the node that had them is asked first.
      if (!end.wasListening) node = nodes[failures % nodes.length]!;
      failures += 1;
      redirects = 0;
      await delay(reconnectDelayMs(failures), undefined, this.#closing).catch(() => undefined);
    }
  }

  close(): void {
    this.#closing.abort();
    this.#client?.disconnect();
  }

  async #listen(node: RedisNode, onFirst: () => void): Promise<{ wasListening: boolean; error: Error }> {
    const client = this.#options.createClient(node);
    this.#client = client;
    // Where a connection fails, the promise of it only says that it is closed.
    let error = new Error('the connection was closed');
    client.on('error', (cause: Error) => {
      error = cause;
    });
    client.on('smessageBuffer', (channel: Buffer, message: Buffer) => this.#receive(channel, message));
    try {
      await client.connect();
      await client.ssubscribe(...this.#options.channels.keys());
    } catch (cause) {
      client.disconnect();
      if (replyCode(cause) !== null) error = cause as Error;
      return { wasListening: false, error };
    }
    this.#begin(onFirst);
    await whileAnswering(client, this.#options.pingIntervalMs);
    client.disconnect();
    this.#lose();
    return { wasListening: true, error };
  }

  #begin(onFirst: () => void): void {
    this.#isListening = true;
    this.#complaints.clear();
    if (this.#hasListened) {
      this.#options.log.info('Redis takes the subscriptions again');
      for (const listener of this.#listeners()) listener.onRestored?.();
    }
    this.#hasListened = true;
    onFirst();
  }

  #lose(): void {
    this.#isListening = false;
    if (this.#closing.signal.aborted) return;
    for (const listener of this.#listeners()) listener.onLost?.();
  }

  #receive(channel: Buffer, message: Buffer): void {
    for (const listener of this.#options.channels.get(channel.toString()) ?? []) listener.onMessage(message);
  }

  *#listeners(): Generator<ChannelListener> {
    for (const listeners of this.#options.channels.values()) yield* listeners;
  }

  #complain(error: Error): void {
    if (this.#closing.signal.aborted) return;
    const isRefusal = replyCode(error) !== null && !isRedisAway(error);
    if (isRefusal && !this.#hasListened)
      throw new ConfigError(`Redis refuses the subscriptions of this process: ${error.message}`);
    const complaint = isRefusal ? 'refused' : 'cut';
    if (this.#complaints.has(complaint)) return;
    this.#complaints.add(complaint);
    if (isRefusal) this.#options.log.error({ err: error }, 'subscribing failed; reconnecting');
    else this.#options.log.warn({ reason: error.message }, 'subscriptions were lost; reconnecting');
  }
}

/** Resolves when the connection has ended, does not answer any more, or has lost its channels to another node. */
async function whileAnswering(client: Redis, pingIntervalMs: number): Promise<void> {
  if (client.status !== 'ready') return;
  const timer = setInterval(() => {
    client.ping().catch(() => client.disconnect());
  }, pingIntervalMs);
  await new Promise<void>((resolve) => {
    client.once('end', resolve);
    client.once('moved', resolve);
  });
  clearInterval(timer);
}

/** @returns the node that a reply such as `MOVED 3999 10.0.0.1:6379` names; without a host it is another port of the same */
function readMoved(error: Error, from: RedisNode): RedisNode | null {
  const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(error.message) ?? [];
  if (host === undefined || replyCode(error) === null) return null;
  return { host: host === '' ? from.host : host, port: Number(port) };
}
