import { addJitter } from '../../outbound/backoff.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/**
 * Pauses after the first attempt, the second and so on: the first six of the schedule that Standard Webhooks
 * suggests.
 */
const pausesMs = [5 * secondMs, 5 * minuteMs, 30 * minuteMs, 2 * hourMs, 5 * hourMs, 10 * hourMs] as const;

/** A receiver may request a longer pause, up to this. */
const maxRetryAfterMs = hourMs;

/**
 * Returns how long to wait before the next attempt, in milliseconds.
 * @param attempts number of attempts so far
 * @param retryAfterMs the pause that the receiver requested, or null
 * @param random from 0 to 1
 */
export function computeRetryDelayMs(
  attempts: number,
  retryAfterMs: number | null,
  random: () => number = Math.random,
): number {
  const pauseMs = pausesMs[attempts - 1] ?? pausesMs.at(-1)!;
  const minMs = Math.max(pauseMs, Math.min(retryAfterMs ?? 0, maxRetryAfterMs));
  return addJitter(minMs, random());
}
