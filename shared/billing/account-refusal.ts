import type { RateLimit } from './rate-window.ts';

/**
 * Refusals that concern the account alone, whatever the request holds. Every script that admits requests can return
 * them.
 */
export type AccountRefusal =
  | { readonly outcome: 'unknown' | 'revoked' | 'banned' }
  | { readonly outcome: 'rate_limited'; readonly rateLimit: RateLimit; readonly retryAfterSeconds: number };
