import fc from 'fast-check';
import test from 'ava';
import { frameJobEvent, listJobEvents, parseEventId, type EventId } from '../../../api/present/job-events.ts';
import type { ShownJob } from '../../../api/present/job-text.ts';
import type { JobRecord, JobStatus } from '../../../shared/jobs/job-record.ts';

interface State {
  readonly position?: number;
  readonly progress?: number;
}

function show(statuses: readonly JobStatus[], { position = 0, progress = 0 }: State = {}): ShownJob {
  const status = statuses.at(-1)!;
  const job: JobRecord = {
    id: '019aa64f-d5de-7c5b-9a51-0c2f7e8d4b16',
    accountId: 'account',
    status,
    operation: 'chat.completions',
    queue: 'chat',
    model: 'm',
    createdAtMs: 1_000,
    deadlineAtMs: 9_000,
    transitions: statuses.map((one, i) => ({ status: one, atMs: 1_000 + i * 100 })),
    attempts: 1,
    workerId: null,
    isCancelRequested: false,
    format: null,
    progress,
    position: null,
    error: status === 'failed' ? { code: 'upstream_error', message: 'broken' } : null,
    receipt: null,
    webhook: null,
  };
  return { job, standing: { position: status === 'queued' ? position : null, etaSeconds: null } };
}

const textOf = ({ index, detail }: EventId): string => `${index}.${detail}`;
const idsOf = (shown: ShownJob, after: EventId | null): string[] =>
  listJobEvents(shown, after).map(({ id }) => textOf(id));

test('every status that a job has had is an event, with the time of that status and nothing of later ones', (t) => {
  const events = listJobEvents(show(['queued', 'active', 'queued', 'active', 'failed']), null);
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
  const data = JSON.parse(frameJobEvent(active!, null)[0].split('\ndata: ')[1]! + 'null}') as Record<
    string,
    unknown
  >;
  t.like(data, { status: 'active', started_at: new Date(1_100).toISOString(), ended_at: null, error: null });
});

test('after an event come those that are later, and of the same status only what has moved on', (t) => {
  const queued = show(['queued'], { position: 7 });
  t.deepEqual(idsOf(queued, null), ['0.7']);
  t.deepEqual(idsOf(queued, { index: 0, detail: 9 }), ['0.7']);
  t.deepEqual(idsOf(queued, { index: 0, detail: 7 }), []);
  t.deepEqual(idsOf(queued, { index: 0, detail: 3 }), []);
  const active = show(['queued', 'active'], { progress: 0.5 });
  t.deepEqual(idsOf(active, { index: 0, detail: 7 }), ['1.50']);
  t.deepEqual(idsOf(active, { index: 1, detail: 20 }), ['1.50']);
  t.deepEqual(idsOf(active, { index: 1, detail: 50 }), []);
  t.deepEqual(idsOf(show(['queued', 'active', 'succeeded']), { index: 2, detail: 0 }), []);
});

test('an id that is none of the job starts from the beginning', (t) => {
  for (const text of [undefined, '', 'x', '1', '1.', '-1.0', '1.2.3', '0x1.0', '9999999.0'])
    t.is(parseEventId(text), null, text);
  t.deepEqual(parseEventId(' 12.34 '), { index: 12, detail: 34 });
  t.deepEqual(idsOf(show(['queued', 'active']), { index: 5, detail: 0 }), ['0.0', '1.0']);
});

/** A life of a job, as looks at it find it: positions fall, progress rises, and a lost job waits again. */
const lives = fc
  .array(fc.record({ waits: fc.array(fc.nat(50)), runs: fc.array(fc.nat(100)) }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((attempts) => {
    const states: ShownJob[] = [];
    const statuses: JobStatus[] = [];
    let lowest = 60;
    for (const { waits, runs } of attempts) {
      statuses.push('queued');
      for (const wait of [60, ...waits]) {
        lowest = Math.min(lowest, wait);
        states.push(show([...statuses], { position: lowest }));
      }
      statuses.push('active');
      for (const run of [0, ...runs.toSorted((a, b) => a - b)])
        states.push(show([...statuses], { progress: run / 100 }));
    }
    statuses.push('succeeded');
    return [...states, show(statuses)];
  });

test('whenever a reader looks and reconnects, it gets every status once, in order, and the last event once', (t) => {
  fc.assert(
    fc.property(lives, fc.infiniteStream(fc.boolean()), (states, looks) => {
      let cursor: EventId | null = null;
      const seen: EventId[] = [];
      const statuses = new Map<number, string>();
      for (const [i, state] of states.entries()) {
        const isLast = i === states.length - 1;
        if (!isLast && looks.next().value === true) continue;
        for (const event of listJobEvents(state, cursor)) {
          seen.push(event.id);
          statuses.set(event.id.index, event.job.status);
          cursor = parseEventId(textOf(event.id));
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
