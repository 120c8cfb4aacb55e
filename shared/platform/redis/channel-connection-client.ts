// decision 0046
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import { listClusterNodes, mergeNodes } from './cluster-nodes-client.ts';
import { readMoved } from './read-moved.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';
import { isRedisUnavailable } from './redis-client.ts';
import type { RedisNode } from './redis-urls.ts';
import { replyCode } from './reply-code.ts';

/** Receives the messages of a channel, and is notified when some may have been missed. */
export interface ChannelListener {
  readonly onMessage: (message: Buffer) => void;
  /** The subscription is lost. From now on, messages are missed. */
  readonly onLost?: () => void;
  /** Messages arrive again. Those since the loss were missed. */
  readonly onRestored?: () => void;
}

export interface ChannelConnectionOptions {
  /** The listeners of all channels. In a Cluster, all channels share one slot. */
  readonly channels: ReadonlyMap<string, readonly ChannelListener[]>;
  /** Nodes to try in turn. Each node of a Cluster knows which one owns the channels. */
  readonly nodes: readonly RedisNode[];
  /** Creates a client that does not connect or reconnect by itself. */
  readonly createClient: (node: RedisNode) => Redis;
  /** Interval of pings to the server. A network that drops packets does not close connections. */
  readonly pingIntervalMs: number;
  readonly log: Logger;
}

/** A node that does not know the other nodes yet may redirect a client in circles. */
const maxRedirects = 5;

/**
 * One connection to the node that owns the channels. When it ends or the channels move to another node, notifies the
 * listeners and reconnects.
 */
export class ChannelConnection {
  readonly #options: ChannelConnectionOptions;
  readonly #closing = new AbortController();
  #nodes: readonly RedisNode[];
  #client: Redis | null = null;
  #isListening = false;
  #hasListened = false;
  /** The kinds of failure already logged in this outage. Each is logged once. */
  readonly #logged = new Set<'lost' | 'rejected'>();

  constructor(options: ChannelConnectionOptions) {
    this.#options = options;
    this.#nodes = options.nodes;
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  /**
   * Listens until closed.
   * @param onSubscribed called each time Redis has accepted the subscriptions: at first and after every reconnect
   * @throws ConfigError if Redis rejects the first subscription permanently
   */
  async run(onSubscribed: () => void): Promise<void> {
    let node = this.#nodes[0]!;
    let failures = 0;
    let redirects = 0;
    while (!this.#closing.signal.aborted) {
      const end = await this.#listen(node, onSubscribed);
      if (end.wasListening) failures = redirects = 0;
      const moved = readMoved(end.error, node);
      if (moved !== null && redirects < maxRedirects) {
        node = moved;
        redirects += 1;
        continue;
      }
      this.#handleFailure(end.error);
      // After a lost connection, try the node that owned the channels first.
      if (!end.wasListening) node = this.#nodes[failures % this.#nodes.length]!;
      failures += 1;
      redirects = 0;
      await delay(reconnectDelayMs(failures), undefined, this.#closing).catch(() => undefined);
    }
  }

  close(): void {
    this.#closing.abort();
    this.#client?.disconnect();
  }

  async #listen(node: RedisNode, onSubscribed: () => void): Promise<{ wasListening: boolean; error: Error }> {
    const client = this.#options.createClient(node);
    this.#client = client;
    // If connecting fails, the promise rejects only with "closed". The event has the cause.
    let error = new Error('the connection was closed');
    client.on('error', (cause: Error) => {
      error = cause;
    });
    client.on('smessageBuffer', (channel: Buffer, message: Buffer) => this.#receive(channel, message));
    const channels = [...this.#options.channels.keys()];
    try {
      await client.connect();
      await requireOwner(client, channels[0]!);
      // All nodes configured at the start may have been replaced by now.
      if (this.#nodes.length > 1)
        this.#nodes = mergeNodes(await listClusterNodes(client), this.#options.nodes);
      await client.ssubscribe(...channels);
    } catch (cause) {
      client.disconnect();
      if (replyCode(cause) !== null || cause instanceof NotMaster) error = cause as Error;
      return { wasListening: false, error };
    }
    this.#markListening(onSubscribed);
    const end = await whileListening(client, channels[0]!, this.#options.pingIntervalMs);
    // A connection that stopped responding may still deliver old messages after the next one has started.
    client.removeAllListeners('smessageBuffer');
    client.disconnect();
    this.#markLost();
    return { wasListening: true, error: end ?? error };
  }

  #markListening(onSubscribed: () => void): void {
    this.#isListening = true;
    this.#logged.clear();
    if (this.#hasListened) {
      this.#options.log.info('Redis subscriptions restored');
      this.#notify((listener) => listener.onRestored?.());
    }
    this.#hasListened = true;
    onSubscribed();
  }

  #markLost(): void {
    this.#isListening = false;
    if (this.#closing.signal.aborted) return;
    this.#notify((listener) => listener.onLost?.());
  }

  /** An exception in one listener must not prevent the other notifications or the reconnect. */
  #notify(notify: (listener: ChannelListener) => void): void {
    for (const listener of this.#listeners()) {
      try {
        notify(listener);
      } catch (error) {
        this.#options.log.error({ err: error }, 'subscription listener failed');
      }
    }
  }

  #receive(channel: Buffer, message: Buffer): void {
    for (const listener of this.#options.channels.get(channel.toString()) ?? []) listener.onMessage(message);
  }

  *#listeners(): Generator<ChannelListener> {
    for (const listeners of this.#options.channels.values()) yield* listeners;
  }

  /**
   * Logs why the connection ended.
   * @throws ConfigError if Redis rejected the first subscription permanently
   */
  #handleFailure(error: Error): void {
    if (this.#closing.signal.aborted) return;
    const isErrorReply = replyCode(error) !== null && !isRedisUnavailable(error);
    if (isErrorReply && !this.#hasListened)
      throw new ConfigError(`Redis refuses the subscriptions of this process: ${error.message}`);
    const kind = isErrorReply ? 'rejected' : 'lost';
    if (this.#logged.has(kind)) return;
    this.#logged.add(kind);
    if (isErrorReply) this.#options.log.error({ err: error }, 'Redis subscription refused; reconnecting');
    else this.#options.log.warn({ reason: error.message }, 'Redis subscriptions lost; reconnecting');
  }
}

/** A standalone server became a replica without closing its connections. */
class NotMaster extends Error {
  constructor() {
    super('Redis is a replica, and the master does not count its subscribers');
  }
}

/**
 * Rejects with `MOVED` if the node does not own the channel's slot. `SSUBSCRIBE` does not check that: replicas accept
 * it, too. But when other processes count a channel's subscribers at the master, it does not include those of its
 * replicas, so this process would look dead.
 */
async function requireOwner(client: Redis, channel: string): Promise<void> {
  try {
    // A key with this name is in the channel's slot. Replicas redirect reads unless the connection is READONLY.
    await client.exists(channel);
  } catch (error) {
    // The slot is migrating. This node owns it until the migration ends.
    if (replyCode(error) !== 'ASK') throw error;
  }
  if (/^role:slave\b/m.test(await client.info('replication'))) throw new NotMaster();
}

/** @returns why the connection can no longer be used, or null if its error event reports the reason */
async function whileListening(client: Redis, channel: string, intervalMs: number): Promise<Error | null> {
  if (client.status !== 'ready') return null;
  const check = async (): Promise<void> => {
    // RESP2 allows only a ping on a subscribed connection.
    if (client.condition?.protocol === 3) await requireOwner(client, channel);
    else await client.ping();
  };
  let timer: NodeJS.Timeout | undefined;
  const end = await new Promise<Error | null>((resolve) => {
    timer = setInterval(() => {
      check().catch(resolve);
    }, intervalMs);
    client.once('end', () => resolve(null));
    client.once('moved', () => resolve(new Error('the channels have moved to another node')));
  });
  clearInterval(timer);
  return end;
}
