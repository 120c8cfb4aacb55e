// decision 0080
import { setTimeout as delay } from 'node:timers/promises';
import { AppError } from '../../shared/contract/errors.ts';
import { hasEnded } from '../../shared/work/jobs/job-record.ts';
import type { JobPolls } from './job-polls.ts';
import type { JobView } from './job-text.ts';

/** The longest pause between two looks at a job (ms). */
const maxPauseMs = 1_000;
/** A wait takes at most this part longer than the job, and a job of a minute is looked at some fifty times. */
const pauseShare = 0.1;

export interface WaitOptions {
  readonly waitMs: number;
  /** Aborted when the caller has disconnected. */
  readonly signal: AbortSignal;
  /** Aborted when this process stops. */
  readonly closing: AbortSignal;
  /** Called after each look at a job that has not ended. */
  readonly onView?: (view: JobView) => void;
}

/**
 * Waits until a job has ended. The caller may leave; the job goes on. While Redis is unavailable, the wait goes on, too.
 * @returns the job: ended, or as last seen if the time is over or this process stops. Null if it is gone
 * @throws the signal's reason when the caller has disconnected; any error of a look other than an outage
 */
export async function waitForEnd(
  polls: Pick<JobPolls, 'poll'>,
  first: JobView,
  { waitMs, signal, closing, onView }: WaitOptions,
): Promise<JobView | null> {
  const startedAtMs = performance.now();
  const stop = AbortSignal.any([signal, closing]);
  let view = first;
  for (;;) {
    signal.throwIfAborted();
    const elapsedMs = performance.now() - startedAtMs;
    if (hasEnded(view.job) || elapsedMs >= waitMs || closing.aborted) return view;
    onView?.(view);
    const pauseMs = Math.min(maxPauseMs, elapsedMs * pauseShare, waitMs - elapsedMs);
    // Rejects only when it is aborted, which is checked next.
    await delay(pauseMs, undefined, { signal: stop }).catch(() => undefined);
    if (stop.aborted) continue;
    const next = await pollThroughOutage(polls, view);
    if (next === null) return null;
    view = next;
  }
}

async function pollThroughOutage(polls: Pick<JobPolls, 'poll'>, last: JobView): Promise<JobView | null> {
  try {
    return await polls.poll(last.job.accountId, last.job.id);
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'service_unavailable') throw error;
    // Without a reply, the look may have taken no time.
    await delay(maxPauseMs);
    return last;
  }
}
