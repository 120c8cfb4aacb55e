import { setTimeout as delay } from 'node:timers/promises';
import type { RequestRun } from './job-context.ts';

/**
 * A stream that nobody reads holds a slot of its route. While another account waits for that slot, a caller has
 * this long to catch up, instead of the usual 30 seconds.
 */
const contestedPauseMs = 3_000;
const askAgainMs = 1_000;

/**
 * Waits until the caller has read what was sent, or ends the run if another account waits for its slot.
 * @param isContested whether another account waits for the slot that the stream holds; called once a second at
 * most
 */
export async function waitForReader(
  run: Pick<RequestRun, 'whenWanted' | 'endStalled'>,
  isContested: () => Promise<boolean>,
): Promise<void> {
  const wanted = run.whenWanted();
  if (wanted === null) return;
  const caughtUp = new AbortController();
  const { signal } = caughtUp;
  const waiting = wanted.then(() => caughtUp.abort());
  for (let pauseMs = contestedPauseMs; !signal.aborted; pauseMs = askAgainMs) {
    // Rejects only when the wait is over.
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted && (await isContested()) && !signal.aborted) run.endStalled();
  }
  await waiting;
}
