import { Redis, type RedisOptions } from 'ioredis';
import { waitingOptions } from './bullmq-client.ts';
import { listClusterNodes } from './cluster-nodes-client.ts';
import { readMoved } from './read-moved.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';
import type { RedisNode } from './redis-urls.ts';

type ClientOptions = RedisOptions & { replyMapping?: 'legacy' };

/** A hung node accepts connections but sends nothing. */
const greetingTimeoutMs = 3_000;

/** The node serves no slots: it is disconnected from the others or was removed from the Cluster. */
const isDown = (error: Error): boolean => error.message.startsWith('CLUSTERDOWN ');

/**
 * A connection for blocking commands to the Cluster node that owns the slot of all its keys. Any node redirects to it:
 * the command fails with `MOVED`, and the next connection goes to the owner.
 */
export class SlotClient extends Redis {
  /** @param nodes tried in turn whenever a connection has ended */
  constructor(nodes: readonly RedisNode[], options: RedisOptions) {
    let known = nodes;
    let nodeIndex = 0;
    let owner: RedisNode | null = null;
    super(
      Object.assign({}, options, waitingOptions, known[0], {
        lazyConnect: true,
        retryStrategy: (attempt: number) => (owner === null ? reconnectDelayMs(attempt) : 0),
        reconnectOnError: (error: Error) => {
          const { host, port } = this.options as RedisNode;
          owner = readMoved(error, { host, port });
          return owner !== null || isDown(error);
        },
      }) as ClientOptions,
    );
    // Each new connection reads the options again.
    this.on('close', () => {
      const next = owner ?? known[++nodeIndex % known.length]!;
      owner = null;
      Object.assign(this.options, next, { socketTimeout: greetingTimeoutMs });
    });
    this.on('ready', () => {
      Object.assign(this.options, { socketTimeout: waitingOptions.socketTimeout });
      listClusterNodes(this).then(
        (found) => {
          if (found.length > 0) known = found;
        },
        // Keep the known nodes until the next connection.
        () => undefined,
      );
    });
    // An event reports the failure.
    this.connect().catch(() => undefined);
  }
}
