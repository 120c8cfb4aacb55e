import fc from 'fast-check';
import test from 'ava';
import {
  frameJobEvent,
  listJobEvents,
  parseEventId,
  writeEventId,
  type EventId,
} from '../../../../api/endpoints/jobs/present-job-events.ts';
import type { JobView } from '../../../../api/jobs/job-text.ts';
import type { JobStatus } from '../../../../shared/contract/job-terms.ts';
import { showJob, shownJobId as jobId } from '../../../support/show-job.ts';

const textOf = ({ index, detail }: EventId): string => `${index}.${detail}`;
const idsOf = (shown: JobView, after: EventId | null): string[] =>
  listJobEvents(shown, after).map(({ id }) => textOf(id));

test('there is an event for each status that a job has had, with the time and the data of that status', (t) => {
  const events = listJobEvents(showJob(['queued', 'active', 'queued', 'active', 'failed']), null);
  t.deepEqual(
    events.map(({ id, job, isLast }) => [textOf(id), job.status, isLast]),
    [
      ['0.0', 'queued', false],
      ['1.100', 'active', false],
      ['2.0', 'queued', false],
      ['3.100', 'active', false],
      ['4.0', 'failed', true],
    ],
  );
  const [queued, active] = events;
  t.is(queued!.job.error, null);
  const data = JSON.parse(
    frameJobEvent(active!, null, 'https://gateway.example')[0].split('\ndata: ')[1]! + 'null}',
  ) as Record<string, unknown>;
  t.like(data, { status: 'active', started_at: new Date(1_100).toISOString(), ended_at: null, error: null });
});

test('after an event, only later ones are sent; one with the same status is sent only if the job has progressed', (t) => {
  const queued = showJob(['queued'], { position: 7 });
  t.deepEqual(idsOf(queued, null), ['0.7']);
  t.deepEqual(idsOf(queued, { index: 0, detail: 9 }), ['0.7']);
  t.deepEqual(idsOf(queued, { index: 0, detail: 7 }), []);
  t.deepEqual(idsOf(queued, { index: 0, detail: 3 }), []);
  const active = showJob(['queued', 'active'], { progress: 0.5 });
  t.deepEqual(idsOf(active, { index: 0, detail: 7 }), ['1.50']);
  t.deepEqual(idsOf(active, { index: 1, detail: 20 }), ['1.50']);
  t.deepEqual(idsOf(active, { index: 1, detail: 50 }), []);
  t.deepEqual(idsOf(showJob(['queued', 'active', 'succeeded']), { index: 2, detail: 0 }), []);
});

test('if an event id does not belong to the job, its events start from the beginning', (t) => {
  const [suffix, otherJobId] = ['7e8d4b16', jobId.replace('7e8d4b16', '7e8d4b17')];
  const garbage = ['', 'x', '1', '1.', '1.2', `-1.0.${suffix}`, `1.2.3.${suffix}`, `0x1.0.${suffix}`];
  for (const text of [
    undefined,
    ...garbage,
    `9999999.0.${suffix}`,
    `1.2.${suffix}x`,
    `1.2.${suffix}, 1.2.${suffix}`,
  ])
    t.is(parseEventId(text, jobId), null, text);
  const foreignId = writeEventId({ index: 2, detail: 0 }, otherJobId);
  t.deepEqual(parseEventId(foreignId, otherJobId), { index: 2, detail: 0 });
  t.is(parseEventId(foreignId, jobId), null, 'the event id belongs to another job');
  t.deepEqual(parseEventId(` 12.34.${suffix} `, jobId), { index: 12, detail: 34 });
  t.deepEqual(idsOf(showJob(['queued', 'active']), { index: 5, detail: 0 }), ['0.0', '1.0']);
});

/** Successive states of a job: its position falls, its progress rises, and if its worker is lost it is queued again. */
const histories = fc
  .array(fc.record({ waits: fc.array(fc.nat(50)), runs: fc.array(fc.nat(100)) }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((attempts) => {
    const states: JobView[] = [];
    const statuses: JobStatus[] = [];
    let lowest = 60;
    for (const { waits, runs } of attempts) {
      statuses.push('queued');
      for (const wait of [60, ...waits]) {
        lowest = Math.min(lowest, wait);
        states.push(showJob([...statuses], { position: lowest }));
      }
      statuses.push('active');
      for (const run of [0, ...runs.toSorted((a, b) => a - b)])
        states.push(showJob([...statuses], { progress: run / 100 }));
    }
    statuses.push('succeeded');
    return [...states, showJob(statuses)];
  });

test('a reader gets every status once and in order, and the last event once, no matter when it polls or reconnects', (t) => {
  fc.assert(
    fc.property(histories, fc.infiniteStream(fc.boolean()), (states, skips) => {
      let cursor: EventId | null = null;
      const seen: EventId[] = [];
      const statuses = new Map<number, string>();
      for (const [i, state] of states.entries()) {
        const isLast = i === states.length - 1;
        if (!isLast && skips.next().value === true) continue;
        for (const event of listJobEvents(state, cursor)) {
          seen.push(event.id);
          statuses.set(event.id.index, event.job.status);
          cursor = parseEventId(writeEventId(event.id, jobId), jobId);
        }
      }
      const last = states.at(-1)!.job;
      t.deepEqual(
        [...statuses.entries()],
        last.transitions.map(({ status }, index) => [index, status]),
      );
      t.is(new Set(seen.map(textOf)).size, seen.length);
      t.deepEqual(listJobEvents(states.at(-1)!, cursor), []);
    }),
  );
});
