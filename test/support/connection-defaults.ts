import type { HttpConnectionsOptions } from '../../api/http/connections/http-connections.ts';

/** Limits so high that no test reaches them unless it sets its own. */
export const connectionDefaults: Omit<HttpConnectionsOptions, 'handle' | 'log'> = {
  keepAliveTimeoutMs: 60_000,
  requestTimeoutMs: 60_000,
  limit: { max: 1_000, maxPerNetwork: null },
  isProxied: false,
  maxStallMs: 60_000,
  idleGraceMs: 0,
  findMemoryBlockers: () => [],
  corsHeaders: () => ({}),
};
