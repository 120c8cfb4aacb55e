import test from 'ava';
import { WorkerAbsence } from '../../../../api/requests/replies/worker-absence.ts';
import type { QueueName } from '../../../../shared/work/queue/job-kinds.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';

interface Setup {
  readonly absence: WorkerAbsence;
  /** What was reported, such as `began chat`, with its facts. */
  readonly reports: readonly (readonly [event: string, facts: object])[];
  /** How many look-ups knew which queues have no worker. */
  readonly countKnown: () => number;
  /** Queues for which the catalog has a model. */
  readonly inUse: Set<QueueName>;
  /** When the last heartbeat of each queue's workers was; null while none is alive. */
  readonly heartbeats: Record<QueueName, number | null>;
  /** Looks up the workers now, or after a while. */
  readonly lookUp: (afterMs?: number) => Promise<void>;
  isRedisDown: boolean;
}

function setUp(queuesInUse: readonly QueueName[] = ['chat', 'image', 'embedding']): Setup {
  const reports: [string, object][] = [];
  const inUse = new Set(queuesInUse);
  let known = 0;
  let nowMs = 0;
  const heartbeats: Setup['heartbeats'] = { chat: null, image: null, embedding: null };
  const absence = new WorkerAbsence(
    {
      findWorkers: async (queues) => {
        if (setup.isRedisDown) throw new Error('simulated outage');
        return queues.map((queue) => {
          const atMs = heartbeats[queue];
          return { alive: new Set(), servedAgoMs: atMs === null ? null : nowMs - atMs, faults: 0 };
        });
      },
    },
    {
      queuesInUse: () => inUse,
      noWorkerTimeoutMs: 15_000,
      countWaiting: (queue) => (queue === 'image' && inUse.has(queue) ? 3 : 0),
      report: {
        began: (queue, absence) => reports.push([`began ${queue}`, absence]),
        ended: (queue, absence, isServed) =>
          reports.push([`${isServed ? 'ended' : 'no longer used:'} ${queue}`, absence]),
        known: () => (known += 1),
      },
    },
    createLogger('test', 'silent'),
    () => nowMs,
  );
  const setup: Setup = {
    absence,
    reports,
    countKnown: () => known,
    inUse,
    heartbeats,
    isRedisDown: false,
    async lookUp(afterMs = 0) {
      nowMs += afterMs;
      await absence.lookUp();
    },
  };
  return setup;
}

test('a queue is unserved 15 s after the last heartbeat of its workers, not after the heartbeat expired', async (t) => {
  const { absence, heartbeats, lookUp } = setUp();
  heartbeats.chat = 0;
  await lookUp(4_900);
  heartbeats.chat = null;
  await lookUp(10_000);
  t.false(absence.isUnserved('chat'));
  await lookUp(101);
  t.true(absence.isUnserved('chat'));
});

test('each queue is measured alone, so workers for other queues do not hide that one has none', async (t) => {
  const { absence, heartbeats, lookUp, reports } = setUp();
  heartbeats.chat = 15_001;
  await lookUp(15_001);
  t.false(absence.isUnserved('chat'));
  t.true(absence.isUnserved('image'));
  t.deepEqual(
    reports.map(([event]) => event),
    ['began image', 'began embedding'],
  );
});

test('an absence is reported once when it begins and once when it ends, with its callers', async (t) => {
  const { absence, heartbeats, lookUp, reports } = setUp(['image']);
  await lookUp(15_001);
  t.deepEqual(reports, [['began image', { unservedMs: 15_001, waiting: 3, refused: 0 }]]);
  absence.noteRejection('image');
  await lookUp(59_999);
  t.is(reports.length, 1);
  heartbeats.image = 75_000;
  await lookUp();
  await lookUp();
  t.deepEqual(reports.slice(1), [['ended image', { unservedMs: 75_000, waiting: 3, refused: 1 }]]);
});

test('an absence ends when no model of the catalog needs the queue any more', async (t) => {
  const { lookUp, reports, inUse } = setUp(['chat', 'image']);
  await lookUp(15_001);
  inUse.delete('image');
  await lookUp();
  await lookUp();
  t.deepEqual(
    reports.map(([event]) => event),
    ['began chat', 'began image', 'no longer used: image'],
  );
});

test('which queues have no worker is known once each queue in use has one, or has had none for long enough', async (t) => {
  const { heartbeats, lookUp, countKnown } = setUp(['chat', 'image']);
  heartbeats.chat = 0;
  await lookUp();
  t.is(countKnown(), 0);
  await lookUp(15_001);
  t.is(countKnown(), 1);
});

test('while Redis is unavailable, and until live workers have had time to send a heartbeat, nobody is refused', async (t) => {
  const setup = setUp();
  const { absence, lookUp } = setup;
  await lookUp(15_001);
  t.true(absence.isUnserved('chat'));
  setup.isRedisDown = true;
  await lookUp(60_000);
  t.is(absence.findUnservedMs('chat'), null);
  setup.isRedisDown = false;
  await lookUp(5_000);
  t.false(absence.isUnserved('chat'));
  await lookUp(10_001);
  t.true(absence.isUnserved('chat'));
});
