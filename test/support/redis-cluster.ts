import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { replyCode } from '../../shared/platform/redis/reply-code.ts';
import { RedisNode } from './redis-node.ts';
import { waitFor } from './wait-for.ts';

const masterCount = 3;
const nodeCount = 2 * masterCount;
const slotCount = 16_384;

export interface RedisClusterOptions {
  /** Clients, the bus and replication all use TLS, with the certificate that only tests trust. */
  readonly tls?: boolean;
}

/** A real Cluster on loopback with three masters, a replica for each, and a password. */
export interface RedisCluster {
  /** All nodes, in the format of REDIS_URL. */
  readonly url: string;
  /** A URL with one node only. */
  readonly oneUrl: string;
  /** Ports of the current masters. */
  masters(): Promise<number[]>;
  /** Kills a node, as in a crash. */
  kill(port: number): Promise<void>;
  /** Restarts a node, and resolves when the Cluster is complete. */
  restart(port: number): Promise<void>;
  /** Makes a master's replica take over, as in planned maintenance. Resolves when all nodes know about it. */
  handOver(port: number): Promise<void>;
  /** Makes a node hang: its connections stay open, without replies. @returns a function that resumes it */
  pause(port: number): () => void;
  /** Sends a command to one node. */
  call(port: number, command: string, ...args: (string | number)[]): Promise<unknown>;
  /** Resolves when every slot has a master again. */
  waitForFailover(): Promise<void>;
  /** Closes every connection that has a subscription. @returns their number */
  killSubscribers(): Promise<number>;
  /** Deletes all keys on all nodes. */
  clear(): Promise<void>;
  close(): Promise<void>;
}

export async function startRedisCluster({ tls = false }: RedisClusterOptions = {}): Promise<RedisCluster> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const nodes = await Promise.all(Array.from({ length: nodeCount }, () => RedisNode.start({ dir, tls })));
  await joinNodes(nodes);
  const find = (port: number): RedisNode => nodes.find((node) => node.port === port)!;
  const dead = new Set<RedisNode>();
  const paused = new Set<RedisNode>();
  const living = (): RedisNode[] => nodes.filter((node) => !dead.has(node) && !paused.has(node));
  const findMasters = async (): Promise<RedisNode[]> => {
    const roles = await Promise.all(living().map((node) => node.client.info('replication')));
    return living().filter((_, i) => roles[i]!.includes('role:master'));
  };

  return {
    url: nodes.map(({ url }) => url).join(','),
    oneUrl: nodes[0]!.url,
    masters: async () => (await findMasters()).map(({ port }) => port),
    async kill(port) {
      dead.add(find(port));
      await find(port).kill();
    },
    async restart(port) {
      await find(port).restart();
      dead.delete(find(port));
      await waitUntilWhole(nodes);
    },
    async handOver(port) {
      const roles = await Promise.all(living().map((node) => node.client.info('replication')));
      const replica = living().find((_, i) => roles[i]!.includes(`master_port:${port}\r\n`))!;
      await replica.client.cluster('FAILOVER');
      await waitFor('the old master to be a replica', async () => {
        const replicas = [find(port).client.info('replication'), replica.client.info('replication')];
        const [before, after] = await Promise.all(replicas);
        return before!.includes('role:slave') && after!.includes('role:master');
      });
      await waitUntilWhole(nodes);
    },
    pause(port) {
      const node = find(port);
      node.signal('SIGSTOP');
      paused.add(node);
      return () => {
        node.signal('SIGCONT');
        paused.delete(node);
      };
    },
    call: (port, command, ...args) => find(port).client.call(command, ...args),
    async waitForFailover() {
      const isAvailable = async (node: RedisNode): Promise<boolean> => {
        try {
          return (await node.client.cluster('INFO')).includes('cluster_state:ok');
        } catch (error) {
          // The node has just restarted, and is still loading its data.
          if (replyCode(error) === 'LOADING') return false;
          throw error;
        }
      };
      await waitFor('a replica to be promoted', async () => {
        if ((await findMasters()).length < masterCount) return false;
        return (await Promise.all(living().map(isAvailable))).every(Boolean);
      });
    },
    async killSubscribers() {
      const killed = living().map((node) => node.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub'));
      return (await Promise.all(killed)).reduce<number>((sum, count) => sum + Number(count), 0);
    },
    async clear() {
      for (const node of await findMasters()) await node.client.flushall();
    },
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** Makes the first half masters, and the second half their replicas. */
async function joinNodes(nodes: readonly RedisNode[]): Promise<void> {
  const masters = nodes.slice(0, masterCount);
  const ids = await Promise.all(nodes.map(({ client }) => client.cluster('MYID')));
  for (const [i, { client }] of nodes.entries()) {
    // Different epochs: nodes with the same one would first have to resolve conflicts over their slots.
    await client.cluster('SET-CONFIG-EPOCH', i + 1);
    for (const { port, busPort } of nodes.slice(0, i))
      await client.cluster('MEET', '127.0.0.1', port, busPort);
  }
  for (const [i, { client }] of masters.entries()) {
    const first = Math.floor((slotCount * i) / masterCount);
    await client.cluster('ADDSLOTSRANGE', first, Math.floor((slotCount * (i + 1)) / masterCount) - 1);
  }
  await waitFor('the Redis nodes to know each other', async () => {
    const lists = await Promise.all(nodes.map(({ client }) => client.cluster('NODES') as Promise<string>));
    return lists.every((list) => ids.every((id) => list.includes(id)) && !list.includes('handshake'));
  });
  const replicas = nodes.slice(masterCount);
  await Promise.all(replicas.map(({ client }, i) => client.cluster('REPLICATE', ids[i]!)));
  await waitUntilWhole(nodes);
}

async function waitUntilWhole(nodes: readonly RedisNode[]): Promise<void> {
  await waitFor('the Redis Cluster to be complete', async () => {
    const known = nodes.map((node) =>
      node.knowsWholeCluster(nodeCount, nodeCount - masterCount).catch((error: unknown) => {
        if (replyCode(error) === 'LOADING') return false;
        throw error;
      }),
    );
    return (await Promise.all(known)).every(Boolean);
  });
}
