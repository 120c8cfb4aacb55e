import type { CallContext, UpstreamTarget } from '../../workers/upstreams/upstream.ts';

/** A route to a model of the vendor's, without peculiarities but for those named. */
export function createTarget(model: string, more: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return { model, apiKey: 'sk-test-key', drops: new Set(), thinking: null, imageUrls: 'pass', ...more };
}

/** The context of a call that nothing is remembered for, and whose messages point at nothing. */
export function createContext(more: Partial<CallContext> = {}): CallContext {
  const ignore = (): void => undefined;
  return {
    signal: new AbortController().signal,
    accountId: 'account',
    log: { warn: ignore, debug: ignore },
    media: { loadImage: (url) => Promise.reject(new Error(`nothing is loaded here: ${url.slice(0, 100)}`)) },
    recalled: new Map(),
    ...more,
  };
}
