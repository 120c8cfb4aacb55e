/**
 * When a route's circuit breaker opens, and how it closes again. Calls count in the window in which they end. Only
 * server failures count against a route; rejected requests and rate limits of a key do not. An open breaker blocks the
 * accounts whose calls failed. It blocks all accounts if several of them failed, and more than those whose latest call
 * succeeded. A failure that one account's requests cause therefore does not block the others.
 */
export const breakerRules = {
  bucketMs: 3_000,
  /** Number of buckets in the window, which is half a minute long. */
  buckets: 10,
  /** Fewer calls than this prove nothing. */
  leastCalls: 10,
  failedPercent: 50,
  /** Failures of fewer accounts than this prove nothing about the others. */
  leastAccounts: 2,
  /** How long an account counts as failed. Longer than the longest pause, or no probe would follow it. */
  failedMs: 60_000,
  /** The first pause of a route. It doubles each time the probe fails, up to the longest pause. */
  firstPauseMs: 1_000,
  longestPauseMs: 30_000,
  /** A probe that has not ended by then no longer stops others from probing. */
  probeMs: 5_000,
  /** How long after the last call the state is kept. */
  forgottenAfterMs: 15 * 60_000,
} as const;
