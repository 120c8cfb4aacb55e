import { Redis, type RedisOptions } from 'ioredis';
import { waitingOptions } from './bullmq-client.ts';
import { listClusterNodes } from './cluster-nodes-client.ts';
import { readMoved } from './read-moved.ts';
import { reconnectDelayMs } from './reconnect-delay.ts';
import type { RedisNode } from './redis-urls.ts';

type OwnOptions = RedisOptions & { replyMapping?: 'legacy' };

/** A hung node accepts connections but sends nothing. */
const greetingTimeoutMs = 3_000;

/** The node serves nothing: it is cut off from the others or was removed from the Cluster. */
const isDown = (error: Error): boolean => error.message.startsWith('CLUSTERDOWN ');

/**
 * A connection for blocking commands, to the Cluster node that owns the slot of all its keys. Any node says which one
 * that is: the redirected command fails with `MOVED`, and the next connection goes to that node.
 */
export class SlotClient extends Redis {
  /** @param nodes asked in turn whenever a connection has ended */
  constructor(nodes: readonly RedisNode[], options: RedisOptions) {
    let known = nodes;
    let turn = 0;
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
      }) as OwnOptions,
    );
    // Each connection reads the options anew.
    this.on('close', () => {
      const next = owner ?? known[++turn % known.length]!;
      owner = null;
      Object.assign(this.options, next, { socketTimeout: greetingTimeoutMs });
    });
    this.on('ready', () => {
      Object.assign(this.options, { socketTimeout: waitingOptions.socketTimeout });
      listClusterNodes(this).then(
        (found) => {
          if (found.length > 0) known = found;
        },
        // The nodes known before will do until the next connection.
        () => undefined,
      );
    });
    // An event reports the failure.
    this.connect().catch(() => undefined);
  }
}
