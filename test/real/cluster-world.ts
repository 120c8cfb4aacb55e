import type { ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { RedisCluster } from '../support/redis-cluster.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** The product on its own Redis Cluster, with a vendor. */
export interface ClusterStack {
  readonly vendor: VendorSimulator;
  readonly stack: TestStack;
  readonly cluster: RedisCluster;
}

/** The prices are not round, so that wrong sums are noticed. `drip-N` sends a word every N milliseconds. */
export const clusterCatalog = (vendorUrl: string): string => {
  const chat = (id: string, model: string): string =>
    `  - { id: ${id}, type: chat, context: 8192, pricing: { prompt: 7001, completion: 13003 }, routes: [{ upstream: vendor, model: "${model}" }] }`;
  return `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key] }
models:
${chat('chat', 'gpt')}
${chat('slow-chat', 'gpt+slow-1000')}
${chat('drip-20', 'gpt+drip-20')}
${chat('drip-100', 'gpt+drip-100')}
  - { id: embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 3001 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: image, type: image, context: 8192, size: [1024x1024], pricing: { type: image, cost_per_image: 0.157 }, routes: [{ upstream: vendor, model: img }] }
`;
};

export async function startClusterStack(): Promise<ClusterStack & { close(): Promise<void> }> {
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  const stack = await startStack({ catalog: clusterCatalog(vendor.url), cluster: {} });
  return {
    vendor,
    stack,
    cluster: stack.cluster!,
    async close() {
      await stack.close();
      await vendor.close();
    },
  };
}

/** A stack on its own Cluster; both are closed when the test ends. */
export async function useClusterStack(t: ExecutionContext): Promise<ClusterStack> {
  const setup = await startClusterStack();
  t.teardown(() => setup.close());
  return setup;
}

/** A count for the long version of the suite, or a lower one for the short version. */
export const chooseCount = (short: number, long: number): number =>
  process.env['TEST_LONG'] === 'on' ? long : short;

export const writeWords = (name: string, count: number): string =>
  Array.from({ length: count }, (_, i) => `${name}-${i}`).join(' ');
