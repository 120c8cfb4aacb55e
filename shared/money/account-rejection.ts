import type { RateLimit } from './rate-window.ts';
import type { TokenLimit } from './restrictions.ts';

/**
 * Reasons to reject a request that depend only on its account and caller, not on its content. Every script that admits
 * requests can return them.
 */
export type AccountRejection =
  | { readonly outcome: 'unknown' | 'revoked' | 'banned' | 'address_refused' }
  | { readonly outcome: 'expired'; readonly expiredAt: Date }
  | { readonly outcome: 'rate_limited'; readonly rateLimit: RateLimit; readonly retryAfterMs: number }
  | { readonly outcome: 'tokens_limited'; readonly rateLimit: RateLimit; readonly tokens: TokenLimit };
