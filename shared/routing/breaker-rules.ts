/**
 * When a route's circuit breaker opens, and how it heals. Calls count in the window in which they ended; only failures
 * of the server count against a route, neither refusals of a request nor the limits of a key. A breaker is
 * open to the accounts whose calls failed. It is so to all where these are several, and more than those whose latest
 * call ended well: what one account's requests bring about closes nothing to others.
 */
export const breakerRules = {
  bucketMs: 3_000,
  /** The window is this many buckets: half a minute. */
  buckets: 10,
  /** Fewer calls than these say nothing. */
  leastCalls: 10,
  failedPercent: 50,
  /** What fewer accounts than these met says nothing of others. */
  leastAccounts: 2,
  /** How long an account that failed is known to: longer than the longest pause, or no probe would follow on that. */
  failedMs: 60_000,
  /** How long a route is left alone the first time; doubled each time that its probe fails, up to the longest. */
  firstPauseMs: 1_000,
  longestPauseMs: 30_000,
  /** A probe that has not ended by then no longer keeps others from probing. */
  probeMs: 5_000,
  /** After the last call nothing is remembered for longer. */
  forgottenAfterMs: 15 * 60_000,
} as const;
