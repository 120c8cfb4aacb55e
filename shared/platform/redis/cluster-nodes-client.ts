import type { Redis } from 'ioredis';
import type { RedisNode } from './redis-urls.ts';

/** A node that serves slots. Its host is null until the nodes have learned each other's names. */
export interface SlotNode {
  readonly host: string | null;
  readonly port: number;
}

export const isNamed = (node: SlotNode): node is RedisNode => node.host !== null;

/** Queries one node for the nodes that serve slots: masters and replicas, each once per range of slots. */
export async function readSlotNodes(client: Redis): Promise<SlotNode[]> {
  const ranges = (await client.cluster('SLOTS')) as readonly [number, number, ...SlotOwner[]][];
  return ranges.flatMap(([, , ...owners]) =>
    owners.map(([host, port]) => ({ host: host === '' || host === '?' ? null : host, port })),
  );
}

type SlotOwner = readonly [host: string | null, port: number, ...metadata: unknown[]];

/** Queries one node for all nodes of the Cluster. Skips nodes without an address. */
export async function listClusterNodes(client: Redis): Promise<RedisNode[]> {
  return mergeNodes((await readSlotNodes(client)).filter(isNamed));
}

/** Merges lists of nodes without duplicates. */
export function mergeNodes(...lists: readonly (readonly RedisNode[])[]): RedisNode[] {
  return [...new Map(lists.flat().map((node) => [`${node.host}:${node.port}`, node])).values()];
}
