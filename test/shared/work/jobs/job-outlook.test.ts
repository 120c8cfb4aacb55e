import test from 'ava';
import fc from 'fast-check';
import {
  estimateEta,
  estimateRemainingSeconds,
  type JobOutlook,
} from '../../../../shared/work/jobs/job-outlook.ts';
import {
  averageRunning,
  averageServiceMs,
  measuredJobs,
  type EndedRun,
} from '../../../../shared/work/jobs/service-time.ts';
import { JobOutlooks } from '../../../../api/jobs/job-outlooks.ts';

const idle: JobOutlook = {
  virtualTime: 0,
  accounts: [],
  running: 0,
  runningMs: [],
  ended: [],
  serviceMs: null,
};

const running = (
  runningMs: number[],
  serviceMs: number | null,
  ended: readonly EndedRun[] = [],
): JobOutlook => ({
  ...idle,
  running: runningMs.length,
  runningMs,
  ended,
  serviceMs,
});

test('there is no estimate if no job is running and no service time is known', (t) => {
  t.is(estimateEta(idle, 3), null);
});

test('a waiting job starts when a running one, or one that follows it, is expected to end', (t) => {
  const outlook = running([1_000, 500, 0, 1_500], 2_000);
  const etas = [0, 1, 2, 3, 4, 8].map((position) => estimateEta(outlook, position));
  t.deepEqual(etas, [2.5, 3, 3.5, 4, 4.5, 6.5]);
  t.is(estimateEta(running([], 2_000), 2), 6, 'one slot is assumed if no job is running');
});

/** Jobs that started together and took two seconds. */
const endedTogether = (count: number, agoMs: number): EndedRun[] =>
  Array.from({ length: count }, () => ({ serviceMs: 2_000, agoMs }));

test('slots of jobs that ended a moment ago count, although their next jobs have not started yet', (t) => {
  const etas = (outlook: JobOutlook): (number | null)[] =>
    [0, 6, 7, 8].map((position) => estimateEta(outlook, position));
  t.deepEqual(etas(running([50], 2_000, endedTogether(8, 100))), [2, 2, 3.95, 4]);
  t.deepEqual(etas(running([], 2_000, endedTogether(8, 100))), [2, 2, 2, 4]);
  t.is(
    estimateEta(running([50], 2_000, endedTogether(8, 60_000)), 2),
    7.95,
    'slots of jobs that ended long ago do not count',
  );
});

test('a pause between the end of some jobs and the start of the next does not look like fewer slots', (t) => {
  for (const pauseMs of [0, 500, 1_000, 2_000, 3_900]) {
    const ended = endedTogether(7, pauseMs);
    const etas = (outlook: JobOutlook) => [0, 6, 7, 20].map((position) => estimateEta(outlook, position));
    t.deepEqual(etas(running([], 2_000, ended)), [2, 2, 4, 6], `a pause of ${pauseMs} ms`);
    t.is(estimateEta(running([0], 2_000, ended), 20), 8, `the first job after a pause of ${pauseMs} ms`);
  }
});

test('the average number of running jobs is estimated from running and finished ones', (t) => {
  const lastSecond = { endedMs: 0, durationMs: 1_000 };
  t.is(averageRunning([500], [{ serviceMs: 2_000, agoMs: 500 }], lastSecond), 1);
  t.is(averageRunning([5_000, 5_000], [], lastSecond), 2);
  t.is(averageRunning([100, 100], [], { endedMs: 0, durationMs: 0 }), 2);
  t.is(averageRunning([500], [{ serviceMs: 2_000, agoMs: 600 }], { endedMs: 500, durationMs: 1_000 }), 0.9);
});

test('the estimate rises if many jobs run longer than usual, but not for one that hangs', (t) => {
  t.is(estimateEta(running([9_000, 10_000, 11_000, 12_000], 2_000), 1), 12.5);
  t.is(estimateEta(running([1_000, 1_000, 1_000, 900_000], 2_000), 2), 3);
  t.is(estimateEta(running([1_000, 1_500], null), 0), 2.5, 'the running jobs are assumed to be half done');
});

test('the remaining time of a running job is never zero, and grows if the job takes long', (t) => {
  t.is(estimateRemainingSeconds(running([500], 2_000), 500), 1.5);
  t.is(estimateRemainingSeconds(running([8_000, 0, 0], 2_000), 8_000), 2);
  t.is(estimateRemainingSeconds(running([3_000], null), 3_000), 3);
});

test('one job that hung does not affect the average service time', (t) => {
  t.is(averageServiceMs([]), null);
  t.is(averageServiceMs([100, 200]), 150);
  t.is(averageServiceMs([100, 100, 900_000, 100, 100]), 100);
});

interface Slot {
  startedMs: number;
  endsMs: number;
}

/** Runs jobs in order on a simulated clock. @returns the largest error of any estimate, as a factor */
function simulate(serviceTimes: readonly number[], slotsAt: (startedJobs: number) => number): number {
  const slots = new Set<Slot>();
  const measured: { serviceMs: number; endedMs: number }[] = [];
  const estimates: { job: number; doneMs: number; nowMs: number }[] = [];
  const doneAtMs: number[] = [];
  let nowMs = 0;
  let next = 0;
  while (next < serviceTimes.length) {
    while (slots.size < slotsAt(next) && next < serviceTimes.length) {
      const endsMs = nowMs + serviceTimes[next]!;
      doneAtMs[next] = endsMs;
      slots.add({ startedMs: nowMs, endsMs });
      next += 1;
    }
    const outlook = running(
      [...slots].map(({ startedMs }) => nowMs - startedMs),
      averageServiceMs(measured.slice(-measuredJobs).map(({ serviceMs }) => serviceMs)),
      measured.map(({ serviceMs, endedMs }) => ({ serviceMs, agoMs: nowMs - endedMs })).toReversed(),
    );
    for (let job = next; job < serviceTimes.length; job++) {
      const seconds = estimateEta(outlook, job - next);
      // Estimates are compared only after five jobs have ended: before that too little is known.
      if (seconds !== null && measured.length >= 5)
        estimates.push({ job, doneMs: nowMs + seconds * 1_000, nowMs });
    }
    const first = [...slots].reduce((one, other) => (other.endsMs < one.endsMs ? other : one));
    nowMs = first.endsMs;
    measured.push({ serviceMs: first.endsMs - first.startedMs, endedMs: nowMs });
    slots.delete(first);
  }
  const factors = estimates.map(({ job, doneMs, nowMs }) => {
    const ratio = (doneMs - nowMs) / (doneAtMs[job]! - nowMs);
    return Math.max(ratio, 1 / ratio);
  });
  return Math.max(1, ...factors);
}

test('estimates are within a factor of three, even as workers start and stop', (t) => {
  fc.assert(
    fc.property(
      // The number of workers doubles or halves at one point. No estimate can foresee this factor of two; the rest of
      // the factor of three is for the differing job durations.
      fc.array(fc.integer({ min: 850, max: 1_180 }), { minLength: 30, maxLength: 60 }),
      fc.integer({ min: 2, max: 8 }),
      fc.constantFrom(0.5, 1, 2),
      fc.integer({ min: 5, max: 40 }),
      (serviceTimes, slots, change, changedAt) => {
        const factor = simulate(serviceTimes, (job) => (job < changedAt ? slots : slots * change));
        return factor <= 3;
      },
    ),
  );
  t.pass();
});

test('callers within half a second share one read of the outlook, and a failed read is repeated', async (t) => {
  let reads = 0;
  const outlooks = new JobOutlooks(async () => {
    reads += 1;
    if (reads === 1) throw new Error('Redis is away');
    return idle;
  });
  const modelQueue = { queue: 'chat', model: 'model' } as const;
  await t.throwsAsync(outlooks.get(modelQueue), { message: 'Redis is away' });
  t.deepEqual(await Promise.all([outlooks.get(modelQueue), outlooks.get(modelQueue)]), [idle, idle]);
  await outlooks.get(modelQueue);
  await outlooks.get({ ...modelQueue, model: 'another' });
  t.is(reads, 3);
});
