import { setTimeout as delay } from 'node:timers/promises';
import type { RequestRun } from './job-context.ts';

/**
 * A stream that nobody reads occupies a slot of its route. If another account waits for that slot, a caller has this
 * long to catch up, instead of the usual 30 seconds.
 */
const contestedPauseMs = 3_000;
const recheckMs = 1_000;

/**
 * Waits until the caller has read what was sent, or cancels the run if another account waits for its slot.
 * @param isContested whether another account waits for the slot that the stream holds; called at most once a second
 */
export async function waitForReader(
  run: Pick<RequestRun, 'whenResumed' | 'cancelStalled'>,
  isContested: () => Promise<boolean>,
): Promise<void> {
  const resumed = run.whenResumed();
  if (resumed === null) return;
  const caughtUp = new AbortController();
  const { signal } = caughtUp;
  const waiting = resumed.then(() => caughtUp.abort());
  for (let pauseMs = contestedPauseMs; !signal.aborted; pauseMs = recheckMs) {
    // Rejects only when the caller has caught up.
    await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    if (!signal.aborted && (await isContested()) && !signal.aborted) run.cancelStalled();
  }
  await waiting;
}
