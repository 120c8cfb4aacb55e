import type { RateLimit } from './rate-window.ts';

/**
 * Reasons to reject a request that depend only on its account, not on its content. Every script that admits requests
 * can return them.
 */
export type AccountRejection =
  | { readonly outcome: 'unknown' | 'revoked' | 'banned' }
  | { readonly outcome: 'rate_limited'; readonly rateLimit: RateLimit; readonly retryAfterMs: number };
