import { Cluster, type Redis } from 'ioredis';
import { readNode, type RedisNode } from './redis-urls.ts';
import { SlotClient } from './slot-client.ts';

type Options = NonNullable<ConstructorParameters<typeof Cluster>[1]>;
type NodeOptions = NonNullable<Options['redisOptions']> & { replyMapping?: 'legacy' };

/** The part of ioredis's connection pool that is patched here. */
interface ConnectionPool {
  getNodes(role: 'all' | 'master' | 'slave'): Redis[];
  getSampleInstance(role: 'all' | 'master' | 'slave'): Redis | undefined;
}

/** Pause between two refreshes of the slot map while nodes are lost or slots move. */
const slotsPauseMs = 100;
/** Maximum pause while a node refuses connections. Every client then refreshes, each time over a new connection. */
const maxSlotsPauseMs = 1_000;
/**
 * Interval of regular refreshes. They are needed because a hung node neither closes connections nor redirects clients,
 * and a replica accepts SPUBLISH as a master does.
 */
const slotsIntervalMs = 5_000;

/** A Cluster client that refreshes its slot map after every sign of a change and that stays closed once closed. */
export class ClusterClient extends Cluster {
  readonly #nodes: readonly string[];
  #refreshing: NodeJS.Timeout | null = null;
  #lostNodePauseMs = slotsPauseMs;

  constructor(nodes: readonly string[], options: Options) {
    super([...nodes], {
      ...options,
      redisOptions: Object.assign({}, options.redisOptions, {
        // ioredis passes this error to the commands of a pipeline and does not update its slot map.
        reconnectOnError: (error: Error): false => {
          if (error.message.startsWith('MOVED ')) this.#refreshSoon();
          return false;
        },
      }) as NodeOptions,
    });
    this.#nodes = nodes;
    this.#sampleServingNodes();
    this.on('-node', () => {
      this.#refreshSoon(this.#lostNodePauseMs);
      this.#lostNodePauseMs = Math.min(2 * this.#lostNodePauseMs, maxSlotsPauseMs);
    });
    // The nodes to reconnect to when all connections are lost. Those configured at the start may be gone by then.
    this.on('refresh', () => {
      const current = this.#listNodes();
      if (current.length > 0) this['startupNodes'] = [...current, ...nodes];
    });
    // ioredis has an option for this, but if a client is closed during a refresh, it starts another and never stops.
    const timer = setInterval(() => this.#refreshSoon(), slotsIntervalMs).unref();
    this.on('end', () => {
      clearInterval(timer);
      clearTimeout(this.#refreshing ?? undefined);
      // The connections end one after the other, and each resets the status as if the client could be used again.
      this.on('close', () => {
        this.status = 'end';
      });
    });
    // Connect replicas before they are needed, too: a command on a connection that is not ready fails.
    this.on('+node', (node: Redis) => {
      node.once('ready', () => {
        this.#lostNodePauseMs = slotsPauseMs;
      });
      // The node reports failures in an event.
      if (node.status === 'wait') node.connect().catch(() => undefined);
    });
  }

  /**
   * Returns the client on which BullMQ waits for work. BullMQ disconnects and reconnects it whenever a wait takes too
   * long. A Cluster client does not survive that: `connect()` never resolves if the first node tried cannot serve, and
   * `end` is never emitted if `connect()` is called first. BullMQ would then wait forever. A connection to a single
   * node handles both.
   */
  override duplicate(_nodes?: [], options?: Partial<Options>): Cluster {
    const nodeOptions = { ...this.options.redisOptions, ...options?.redisOptions };
    const known = this.#listNodes();
    const client = new SlotClient(known.length > 0 ? known : this.#nodes.map(readNode), nodeOptions);
    // BullMQ checks what kind of client this is.
    return client as unknown as Cluster;
  }

  #listNodes(): RedisNode[] {
    return this.nodes('all').map(({ options: { host = '', port = 0 } }) => ({ host, port }));
  }

  #refreshSoon(pauseMs = slotsPauseMs): void {
    this.#refreshing ??= setTimeout(() => {
      this.#refreshing = null;
      this.refreshSlotsCache();
    }, pauseMs).unref();
  }

  /**
   * Makes ioredis choose only among nodes that are ready. If the owner of a slot is gone, ioredis chooses a random node
   * for each command of a pipeline. A command fails if it gets a connection that is not ready, and the pipeline is
   * never written. Its other commands remain among those that await replies and receive the replies of later commands,
   * so replies reach the wrong callers.
   */
  #sampleServingNodes(): void {
    const pool = this['connectionPool'] as ConnectionPool;
    let next = 0;
    pool.getSampleInstance = (role) => {
      const serving = pool.getNodes(role).filter(({ status }) => status === 'ready');
      return serving[next++ % serving.length];
    };
  }
}
