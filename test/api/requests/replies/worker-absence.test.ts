import test from 'ava';
import { WorkerAbsence } from '../../../../api/requests/replies/worker-absence.ts';
import type { QueueName } from '../../../../shared/work/queue/job-kinds.ts';
import { captureLog, type LogLine } from '../../../support/captured-log.ts';

interface Setup {
  readonly absence: WorkerAbsence;
  readonly lines: readonly LogLine[];
  /** When the last heartbeat of each queue's workers was; null while none is alive. */
  readonly heartbeats: Record<QueueName, number | null>;
  /** Looks up the workers now, or after a while. */
  readonly lookUp: (afterMs?: number) => Promise<void>;
  isRedisDown: boolean;
}

function setUp(queuesInUse: readonly QueueName[] = ['chat', 'image', 'embedding']): Setup {
  const { log, lines } = captureLog();
  let nowMs = 0;
  const heartbeats: Setup['heartbeats'] = { chat: null, image: null, embedding: null };
  const absence = new WorkerAbsence(
    {
      findWorkers: async (queues) => {
        if (setup.isRedisDown) throw new Error('simulated outage');
        return queues.map((queue) => {
          const atMs = heartbeats[queue];
          return { alive: new Set(), servedAgoMs: atMs === null ? null : nowMs - atMs };
        });
      },
    },
    {
      queuesInUse: () => new Set(queuesInUse),
      noWorkerTimeoutMs: 15_000,
      countWaiting: (queue) => (queue === 'image' ? 3 : 0),
    },
    log,
    () => nowMs,
  );
  const setup: Setup = {
    absence,
    lines,
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
  const { absence, heartbeats, lookUp, lines } = setUp();
  heartbeats.chat = 15_001;
  await lookUp(15_001);
  t.false(absence.isUnserved('chat'));
  t.true(absence.isUnserved('image'));
  t.deepEqual(
    lines.map(({ queue }) => queue),
    ['image', 'embedding'],
  );
});

test('an absence is logged as an error once a minute with its callers, and its end once', async (t) => {
  const { absence, heartbeats, lookUp, lines } = setUp(['image']);
  await lookUp(15_001);
  t.is(lines.length, 1);
  t.like(lines[0], {
    level: 50,
    msg: 'no live worker for queue',
    queue: 'image',
    unservedSeconds: 15,
    waiting: 3,
    refused: 0,
  });
  absence.noteRejection('image');
  await lookUp(59_000);
  t.is(lines.length, 1);
  await lookUp(1_000);
  t.like(lines[1], { level: 50, unservedSeconds: 75, refused: 1 });
  heartbeats.image = 75_001;
  await lookUp();
  await lookUp();
  t.is(lines.length, 3);
  t.like(lines[2], { level: 30, msg: 'queue has a live worker again', queue: 'image', unservedSeconds: 75 });
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
