import type { Schema } from '../../admin/api.ts';

type Attempt = Schema<'AdminAttempt'>;

/** What a request did before, between or after the calls of vendors. */
type Wait = 'queue' | 'pause' | 'end' | 'rest';

/** What a request did for a while: a call of a vendor, or one of the others. */
export type Step = {
  /** From the admission. */
  readonly startMs: number;
  readonly durationMs: number;
} & ({ readonly kind: 'call'; readonly attempt: Attempt } | { readonly kind: Wait; readonly attempt: null });

export interface Steps {
  readonly steps: readonly Step[];
  /** From the admission to the settlement. */
  readonly totalMs: number;
  /** Whether it is known when each call began. Otherwise they stand one after the other. */
  readonly hasTimes: boolean;
}

/** Shorter ones are only rounding. */
const shortestGapMs = 5;

/** Returns what a request did from its admission to its settlement, in order. */
export function listSteps(attempts: readonly Attempt[], totalSeconds: number): Steps {
  const timed = attempts.flatMap((attempt) =>
    attempt.started_ms === null ? [] : [{ attempt, startMs: attempt.started_ms }],
  );
  const totalMs = Math.round(totalSeconds * 1_000);
  return timed.length === attempts.length ? placeByTime(timed, totalMs) : placeInOrder(attempts, totalMs);
}

function placeByTime(
  calls: readonly { readonly attempt: Attempt; readonly startMs: number }[],
  totalMs: number,
): Steps {
  const steps: Step[] = [];
  let reachedMs = 0;
  const fillUntil = (untilMs: number, kind: Wait): void => {
    const durationMs = untilMs - reachedMs;
    if (durationMs >= shortestGapMs) steps.push({ kind, startMs: reachedMs, durationMs, attempt: null });
  };
  for (const [i, { attempt, startMs }] of calls.entries()) {
    fillUntil(startMs, i === 0 ? 'queue' : 'pause');
    steps.push({ kind: 'call', startMs, durationMs: attempt.duration_ms, attempt });
    reachedMs = Math.max(reachedMs, startMs + attempt.duration_ms);
  }
  fillUntil(totalMs, calls.length === 0 ? 'queue' : 'end');
  return { steps, totalMs: Math.max(totalMs, reachedMs, 1), hasTimes: true };
}

function placeInOrder(attempts: readonly Attempt[], totalMs: number): Steps {
  const calledMs = attempts.reduce((sum, { duration_ms: durationMs }) => sum + durationMs, 0);
  const restMs = totalMs - calledMs;
  const steps: Step[] = [];
  let reachedMs = 0;
  if (restMs >= shortestGapMs) {
    steps.push({ kind: 'rest', startMs: 0, durationMs: restMs, attempt: null });
    reachedMs = restMs;
  }
  for (const attempt of attempts) {
    steps.push({ kind: 'call', startMs: reachedMs, durationMs: attempt.duration_ms, attempt });
    reachedMs += attempt.duration_ms;
  }
  return { steps, totalMs: Math.max(totalMs, reachedMs, 1), hasTimes: false };
}
