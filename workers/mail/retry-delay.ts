import type { Mail } from '../../shared/web/mail.ts';

const firstPauseMs = 5_000;
const maxPauseMs: Record<Mail['kind'], number> = {
  // A user waits for the code, which is valid for ten minutes at most.
  'sign-in-code': 60_000,
  'confirmation-code': 60_000,
  notice: 15 * 60_000,
};

/** Share of the pause that is added at random, so that mails that failed together do not retry together. */
const jitterPart = 0.2;

/**
 * Returns how long to wait before the next attempt to send a mail, in milliseconds: twice as long each time.
 * @param attempts made so far
 * @param random from 0 to 1
 */
export function computeMailRetryMs(
  attempts: number,
  kind: Mail['kind'],
  random: () => number = Math.random,
): number {
  const pauseMs = Math.min(firstPauseMs * 2 ** Math.min(attempts - 1, 20), maxPauseMs[kind]);
  return Math.ceil(pauseMs * (1 + jitterPart * random()));
}
