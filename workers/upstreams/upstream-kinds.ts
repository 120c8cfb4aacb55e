import type { CatalogUpstream } from '../../shared/catalog/catalog-schema.ts';
import { createBuiltinUpstream } from './builtin/builtin-upstream.ts';
import { createOpenAiUpstream } from './openai/openai-upstream.ts';
import type { Upstream } from './upstream.ts';

/** How each kind of the catalog becomes an upstream: the whole list in one place. */
const kinds = {
  builtin: () => createBuiltinUpstream(),
  openai: (config) =>
    createOpenAiUpstream({
      baseUrl: config.baseUrl,
      connections: config.maxConcurrency,
      timeouts: {
        connectMs: config.connectTimeoutMs,
        firstByteMs: config.firstByteTimeoutMs,
        betweenChunksMs: config.betweenChunksTimeoutMs,
        totalMs: config.timeoutMs,
      },
    }),
} satisfies Record<CatalogUpstream['kind'], (config: CatalogUpstream) => Upstream>;

export function createUpstream(config: CatalogUpstream): Upstream {
  return kinds[config.kind](config);
}
