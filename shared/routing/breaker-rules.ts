/**
 * When a route's circuit breaker opens, and how it closes again. A call belongs to the window in which it ends. Only
 * server failures count against a route; rejected requests and rate limits of a key do not. An open breaker blocks the
 * accounts whose calls failed. It blocks all accounts if several failed and they outnumber those whose latest call
 * succeeded. A failure caused by one account's requests therefore does not block the others.
 */
export const breakerRules = {
  bucketMs: 3_000,
  /** Number of buckets in the window, which is half a minute long. */
  buckets: 10,
  /** Minimum number of calls to open the breaker. */
  minCalls: 10,
  failedPercent: 50,
  /** Minimum number of failed accounts to block all accounts. */
  minAccounts: 2,
  /** How long an account counts as failed. Must exceed the longest pause, or no probe would follow it. */
  failedMs: 60_000,
  /** The first pause of a route. It doubles each time the probe fails, up to the longest pause. */
  firstPauseMs: 1_000,
  maxPauseMs: 30_000,
  /** How long a probe prevents others. */
  probeMs: 5_000,
  /** A failure that the request may have caused does not count if the route served a call this long before it. */
  servedMs: 5_000,
  /** How long the state is stored after the last call. */
  retentionMs: 15 * 60_000,
} as const;
