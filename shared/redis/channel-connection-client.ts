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
    const channels = [...this.#options.channels.keys()];
    try {
      await client.connect();
      await requireOwner(client, channels[0]!);
      await client.ssubscribe(...channels);
    } catch (cause) {
      client.disconnect();
      if (replyCode(cause) !== null) error = cause as Error;
      return { wasListening: false, error };
    }
    this.#begin(onFirst);
    const end = await whileListening(client, channels[0]!, this.#options.pingIntervalMs);
    // A connection that did not answer may still deliver what it had, after the next one has begun.
    client.removeAllListeners('smessageBuffer');
    client.disconnect();
    this.#lose();
    return { wasListening: true, error: end ?? error };
  }

  #begin(onFirst: () => void): void {
    this.#isListening = true;
    this.#complaints.clear();
    if (this.#hasListened) {
      this.#options.log.info('Redis takes the subscriptions again');
      this.#tell((listener) => listener.onRestored?.());
    }
    this.#hasListened = true;
    onFirst();
  }

  #lose(): void {
    this.#isListening = false;
    if (this.#closing.signal.aborted) return;
    this.#tell((listener) => listener.onLost?.());
  }

  /** A listener that fails keeps neither the others from being told nor the connection from being made again. */
  #tell(tell: (listener: ChannelListener) => void): void {
    for (const listener of this.#listeners()) {
      try {
        tell(listener);
      } catch (error) {
        this.#options.log.error({ err: error }, 'a listener failed when the subscriptions changed');
      }
    }
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

/**
 * Rejects with `MOVED` where the node does not own the channel's slot. `SSUBSCRIBE` itself does not ask for that: a replica
 * accepts it too, but the master does not count the subscribers of its replicas, so this process would seem to be dead.
 */
async function requireOwner(client: Redis, channel: string): Promise<void> {
  try {
    // A key of this name has the channel's slot. Replicas redirect reads unless the connection is READONLY.
    await client.exists(channel);
  } catch (error) {
    // The slot is migrating. Until that has ended this node owns it.
    if (replyCode(error) !== 'ASK') throw error;
  }
}

/** @returns why the connection serves no more, or null where its own error says so */
async function whileListening(client: Redis, channel: string, intervalMs: number): Promise<Error | null> {
  if (client.status !== 'ready') return null;
  const check = async (): Promise<void> => {
    // RESP2 allows nothing else on a connection that is subscribed.
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

/** @returns the node that a reply such as `MOVED 3999 10.0.0.1:6379` names; without a host it is another port of the same */
function readMoved(error: Error, from: RedisNode): RedisNode | null {
  const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(error.message) ?? [];
  if (host === undefined || replyCode(error) === null) return null;
  return { host: host === '' ? from.host : host, port: Number(port) };
}
