import type { CatalogRoute, CatalogUpstream } from '../../shared/catalog/catalog-schema.ts';

interface RouteOptions {
  readonly upstream?: string;
  readonly apiKeys?: readonly string[];
  readonly weight?: number;
  readonly maxConcurrency?: number;
  readonly maxConcurrencyPerKey?: number;
  readonly routeConcurrency?: number;
}

/** A route with this id, with its own upstream by default. */
export function createRoute(id: string, options: RouteOptions = {}): CatalogRoute {
  const upstream: CatalogUpstream = {
    name: options.upstream ?? `upstream-of-${id}`,
    kind: 'openai',
    baseUrl: 'http://127.0.0.1:9/v1',
    profile: null,
    headers: {},
    apiKeys: options.apiKeys ?? [],
    maxConcurrency: options.maxConcurrency ?? 64,
    maxConcurrencyPerKey: options.maxConcurrencyPerKey ?? null,
    timeoutMs: 1_000,
    connectTimeoutMs: 1_000,
    firstByteTimeoutMs: 1_000,
    streamFirstByteTimeoutMs: 1_000,
    betweenChunksTimeoutMs: 1_000,
    drops: [],
    maxBatchInputs: 2048,
    maxBatchTokens: 300_000,
    imageUrls: 'pass',
    disconnectGraceMs: 2_000,
    sendsTraceparent: false,
  };
  return {
    id,
    upstream,
    model: id,
    weight: options.weight ?? 1,
    maxConcurrency: options.routeConcurrency ?? null,
    thinking: null,
    profile: 'compatible',
    drops: new Set(),
    accepts: [],
    onDisconnect: 'cancel',
    maxTokens: 'all',
    cost: null,
  };
}
