import type { CatalogUpstream } from '../../shared/catalog/catalog-schema.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { createAnthropicUpstream } from '../upstreams/anthropic/anthropic-upstream.ts';
import { createBuiltinUpstream } from '../upstreams/builtin/builtin-upstream.ts';
import { createGeminiUpstream } from '../upstreams/gemini/gemini-upstream.ts';
import type { HttpClientOptions } from '../upstreams/http-client.ts';
import { createOpenAiUpstream } from '../upstreams/openai/openai-upstream.ts';
import type { Upstream } from '../upstreams/upstream.ts';

/** Creates the upstream for each kind in the catalog. This is the complete list. */
const kinds = {
  anthropic: (config) => createAnthropicUpstream(toHttpOptions(config)),
  builtin: (_, log) =>
    createBuiltinUpstream({
      onEncoderFault: (cause) => log.error({ err: cause }, 'encoder thread died'),
    }),
  gemini: (config) => createGeminiUpstream(toHttpOptions(config)),
  openai: (config) => createOpenAiUpstream(toHttpOptions(config)),
} satisfies Record<CatalogUpstream['kind'], (config: CatalogUpstream, log: Logger) => Upstream>;

export function createUpstream(config: CatalogUpstream, log: Logger): Upstream {
  return kinds[config.kind](config, log);
}

function toHttpOptions(config: CatalogUpstream): HttpClientOptions {
  return {
    baseUrl: config.baseUrl,
    connections: config.maxConcurrency,
    headers: config.headers,
    timeouts: {
      connectMs: config.connectTimeoutMs,
      firstByteMs: config.firstByteTimeoutMs,
      streamFirstByteMs: config.streamFirstByteTimeoutMs,
      betweenChunksMs: config.betweenChunksTimeoutMs,
      totalMs: config.timeoutMs,
    },
  };
}
