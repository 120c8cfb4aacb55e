import type { RateLimit } from './rate-window.ts';

/** What an account is refused for by every script that admits requests, whatever its request holds. */
export type AccountRefusal =
  | { readonly outcome: 'unknown' | 'revoked' | 'banned' }
  | { readonly outcome: 'rate_limited'; readonly rateLimit: RateLimit; readonly retryAfterSeconds: number };
