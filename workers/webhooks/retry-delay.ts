const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/** Pauses after the first attempt, the second and so on: the first six that Standard Webhooks suggests. */
const pausesMs = [5 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs] as const;

/** A receiver may ask for a longer pause, up to this. */
const maxRetryAfterMs = hourMs;

/** Share of the pause that is added at random, so that deliveries that failed together do not retry together. */
const jitterPart = 0.2;

/**
 * Returns how long to wait before the next attempt, in milliseconds.
 * @param attempts made so far
 * @param retryAfterMs what the receiver asked for, or null
 * @param random from 0 to 1
 */
export function computeRetryDelayMs(
  attempts: number,
  retryAfterMs: number | null,
  random: () => number = Math.random,
): number {
  const pauseMs = pausesMs[attempts - 1] ?? pausesMs.at(-1)!;
  const leastMs = Math.max(pauseMs, Math.min(retryAfterMs ?? 0, maxRetryAfterMs));
  return Math.ceil(leastMs * (1 + jitterPart * random()));
}
