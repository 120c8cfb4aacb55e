import type { RateLimit } from './rate-window.ts';

/**
 * Refusals that depend only on the account, not on the content of the request. Every script that admits requests can
 * return them.
 */
export type AccountRefusal =
  | { readonly outcome: 'unknown' | 'revoked' | 'banned' }
  | { readonly outcome: 'rate_limited'; readonly rateLimit: RateLimit; readonly retryAfterSeconds: number };
