import type { Mail } from '../../../shared/account-area/mail.ts';
import { addJitter, computeBackoffMs } from '../../outbound/backoff.ts';

const firstPauseMs = 5_000;
const maxPauseMs: Record<Mail['kind'], number> = {
  // A user is waiting for the code, which is valid for at most ten minutes.
  'sign-in-code': 60_000,
  'confirmation-code': 60_000,
  notice: 15 * 60_000,
};

/**
 * Returns how long to wait before the next attempt to send a mail, in milliseconds. The pause doubles each time, up to
 * a maximum.
 * @param attempts number of attempts so far
 * @param random from 0 to 1
 */
export function computeMailRetryMs(
  attempts: number,
  kind: Mail['kind'],
  random: () => number = Math.random,
): number {
  const limits = { firstMs: firstPauseMs, maxMs: maxPauseMs[kind] };
  return addJitter(computeBackoffMs(attempts, limits), random());
}
