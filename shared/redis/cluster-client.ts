import { Cluster, type Redis } from 'ioredis';

type Options = NonNullable<ConstructorParameters<typeof Cluster>[1]>;
type NodeOptions = NonNullable<Options['redisOptions']> & { replyMapping?: 'legacy' };

/** Between two looks at which node has which slots, while nodes are lost or slots move. */
const slotsPauseMs = 100;
/** A node that hangs closes nothing and redirects nobody, and a replica takes SPUBLISH as a master does. */
const slotsIntervalMs = 5_000;

/** A client of a Cluster, which learns from all that happens where the slots are, and once closed stays closed. */
export class ClusterClient extends Cluster {
  readonly #nodes: readonly string[];
  #refreshing: NodeJS.Timeout | null = null;

  constructor(nodes: readonly string[], options: Options) {
    super([...nodes], {
      ...options,
      redisOptions: Object.assign({}, options.redisOptions, {
        // Of commands that shared a pipeline, ioredis hands this error on, and learns nothing from it.
        reconnectOnError: (error: Error): false => {
          if (error.message.startsWith('MOVED ')) this.#refreshSoon();
          return false;
        },
      }) as NodeOptions,
    });
    this.#nodes = nodes;
    this.on('-node', () => this.#refreshSoon());
    // The option of ioredis for this begins another round when a client is closed in the middle of one, and never ends.
    const timer = setInterval(() => this.#refreshSoon(), slotsIntervalMs).unref();
    this.on('end', () => {
      clearInterval(timer);
      clearTimeout(this.#refreshing ?? undefined);
      // Its connections end one after the other, and each sets the status back, as if it could be used again.
      this.on('close', () => {
        this.status = 'end';
      });
    });
    // Also replicas, before they are needed: a command that meets a connection in the making fails.
    this.on('+node', (node: Redis) => {
      // It says so in an event of its own.
      if (node.status === 'wait') node.connect().catch(() => undefined);
    });
  }

  /** BullMQ waits for work on one, and for its end when it is closed. */
  override duplicate(nodes?: [], options?: Partial<Options>): Cluster {
    const { redisOptions, ...rest } = options ?? {};
    return new ClusterClient(nodes !== undefined && nodes.length > 0 ? nodes : this.#nodes, {
      ...this.options,
      ...rest,
      redisOptions: Object.assign({}, this.options.redisOptions, redisOptions),
    });
  }

  #refreshSoon(): void {
    this.#refreshing ??= setTimeout(() => {
      this.#refreshing = null;
      this.refreshSlotsCache();
    }, slotsPauseMs).unref();
  }
}
