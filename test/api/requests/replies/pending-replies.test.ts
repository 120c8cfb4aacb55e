import { randomBytes, randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import {
  checksUntilLost,
  checksUntilRerunIsLost,
} from '../../../../api/requests/replies/find-lost-replies.ts';
import { FactsInbox } from '../../../../api/requests/replies/facts-inbox.ts';
import { PendingReplies } from '../../../../api/requests/replies/pending-replies.ts';
import type { Absence } from '../../../../api/requests/replies/worker-absence.ts';
import type { PendingReply } from '../../../../api/requests/replies/pending-reply.ts';
import type { AppError } from '../../../../shared/contract/errors.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../../../shared/money/admitted-request.ts';
import type { QueueName } from '../../../../shared/work/queue/job-kinds.ts';
import { WorkerRegistryStore } from '../../../../shared/work/queue/worker-registry-store.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../../shared/platform/redis/redis-client.ts';
import { redisChannels, redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import { Subscriber } from '../../../../shared/platform/redis/subscriber-client.ts';
import { FrameOrder } from '../../../../api/requests/replies/frame-order.ts';
import { encodeFrame, encodeOffer, pieceBytes, type Frame } from '../../../../shared/work/replies/frame.ts';
import type { ControlMessage } from '../../../../shared/work/replies/worker-control.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { idleLoad } from '../../../support/worker-load.ts';
import { captureLog, type LogLine } from '../../../support/captured-log.ts';
import { listenTo } from '../../../support/listen-to.ts';
import { openTestRedis, type OpenedRedis } from '../../../support/stores.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { liveness } from '../../../../shared/platform/redis/liveness.ts';

const log = createLogger('test', 'silent');
let server: OpenedRedis;

test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

async function connect(t: ExecutionContext): Promise<RedisClient> {
  const client = createRedis(server.url, 'commands', log);
  t.teardown(() => client.disconnect());
  await waitUntilReady(client);
  return client;
}

type Outcome = { readonly response: Buffer } | { readonly failed: string };

interface Setup {
  readonly redis: RedisClient;
  readonly registry: WorkerRegistryStore;
  readonly replies: PendingReplies;
  readonly abandoned: readonly string[];
  readonly wait: (request: {
    requestId?: string;
    /** As for every unfinished request; defaults to true. */
    hasReservation?: boolean;
    workerId?: string;
    endsAtMs?: number;
    queue?: QueueName;
    mayRestart?: boolean;
  }) => Promise<Outcome>;
  readonly advance: (ms: number) => void;
  /** The log lines of the process. */
  readonly lines: readonly LogLine[];
  /** Reports of queues without a worker. */
  readonly absences: readonly (Absence & { readonly queue: QueueName })[];
}

async function setUp(t: ExecutionContext): Promise<Setup> {
  const redis = await connect(t);
  const subscriber = new Subscriber(server.url, log);
  const registry = new WorkerRegistryStore(redis);
  let nowMs = 0;
  const captured = captureLog();
  const absences: (Absence & { readonly queue: QueueName })[] = [];
  const memory = new FairBudget({ capacity: 512_000_000 });
  const replies = new PendingReplies(
    randomUUID(),
    redis,
    subscriber,
    registry,
    memory,
    captured.log,
    {
      queuesInUse: () => new Set(['chat', 'image'] as const),
      noWorkerTimeoutMs: 15_000,
      report: {
        began: (queue, absence) => absences.push({ queue, ...absence }),
        ended: () => undefined,
        known: () => undefined,
      },
    },
    new FactsInbox(),
    () => nowMs,
  );
  t.teardown(() => replies.close());
  t.teardown(() => subscriber.close());
  await subscriber.start();
  const abandoned: string[] = [];
  const owner = {
    check: () => undefined,
    mayRun: () => true,
    abandon: ({ request }: PendingReply) => void abandoned.push(request.requestId),
    withdraw: () => false,
  };
  return {
    redis,
    registry,
    replies,
    abandoned,
    lines: captured.lines,
    absences,
    wait({
      requestId = randomUUID(),
      hasReservation = true,
      workerId,
      endsAtMs = Date.now() + 60_000,
      queue = 'image',
      mayRestart = true,
    }) {
      const reservationsKey = redisKeys.reservations(shardOf('a'));
      if (hasReservation) redis.hset(reservationsKey, requestId, 'a 1 0 1').catch(() => undefined);
      return new Promise((resolve) => {
        const request = { requestId, accountId: 'a', deadlineAtMs: endsAtMs, claimHash: null };
        replies.add(
          {
            request: request as AdmittedRequest,
            queue,
            receiver: {
              delta: () => undefined,
              mayRestart: () => mayRestart,
              end: ({ bytes }) => resolve({ response: bytes }),
              fail: (error: AppError) => resolve({ failed: error.code }),
            },
            order: new FrameOrder(),
            workerId: workerId ?? null,
            hasOutput: false,
            tokens: 0,
          },
          { ...owner, checksUntilLost: queue === 'chat' ? checksUntilLost : checksUntilRerunIsLost },
        );
      });
    },
    advance(ms) {
      nowMs += ms;
    },
  };
}

interface TestWorker {
  readonly id: string;
  /** Sends a frame of a request's attempt. */
  readonly send: (
    requestId: string,
    attempt: number,
    sequence: number,
    kind: Frame['kind'],
    payload?: Buffer,
  ) => void;
  /** Accepts the request, offers a result of this length, and sends each of these pieces once it is requested. */
  readonly serve: (
    requestId: string,
    attempt: number,
    length: number,
    pieces: readonly Buffer[],
  ) => Promise<void>;
  /** The next control message to this worker. */
  readonly nextControl: () => Promise<ControlMessage>;
  /** Stops the heartbeat of this worker. */
  readonly die: () => Promise<void>;
}

const load = { ...idleLoad, active: 1, bulkRuns: 1 };

async function startWorker(t: ExecutionContext, { redis, replies, registry }: Setup): Promise<TestWorker> {
  const id = randomUUID();
  await registry.beat('image', id, load);
  // A heartbeat in flight when the test ends fails because its client is closed.
  const sendHeartbeat = (): void => void registry.beat('image', id, load).catch(() => undefined);
  const heartbeat = setInterval(sendHeartbeat, liveness.worker.reportMs);
  t.teardown(() => clearInterval(heartbeat));
  const control = await listenTo(t, server.url, redisChannels.control(id));
  const nextControl = async (): Promise<ControlMessage> =>
    JSON.parse((await control.receive()).toString()) as ControlMessage;
  const send: TestWorker['send'] = (requestId, attempt, sequence, kind, payload = Buffer.alloc(0)) => {
    const frame = encodeFrame({ requestId, attempt, sequence, kind, tokens: 0, payload });
    redis.spublish(replies.channel, frame).catch(() => undefined);
  };
  return {
    id,
    send,
    nextControl,
    async die() {
      clearInterval(heartbeat);
      await registry.leave('image', id);
    },
    async serve(requestId, attempt, length, pieces) {
      send(requestId, attempt, 0, 'accepted', Buffer.from(id));
      send(requestId, attempt, 1, 'offered', encodeOffer(length));
      let sent = 0;
      let requestedTo = 0;
      for (const [i, piece] of pieces.entries()) {
        while (requestedTo < sent + piece.length) {
          const message = await nextControl();
          if (message.action === 'send' && message.requestId === requestId) requestedTo = message.upToByte;
        }
        send(requestId, attempt, 2 + i, 'piece', piece);
        sent += piece.length;
      }
    },
  };
}

function split(bytes: Buffer): Buffer[] {
  const count = Math.ceil(bytes.length / pieceBytes);
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * pieceBytes, (i + 1) * pieceBytes));
}

test('a request fails if its worker is dead and its deadline has passed; if only one of these applies, it waits', async (t) => {
  const setup = await setUp(t);
  const liveWorker = await startWorker(t, setup);
  const past = Date.now() - 1;
  const outcomes: Outcome[] = [];
  void setup.wait({ workerId: liveWorker.id, endsAtMs: past }).then((outcome) => outcomes.push(outcome));
  void setup.wait({ workerId: 'dead' }).then((outcome) => outcomes.push(outcome));
  const late = { requestId: 'late', workerId: 'dead', endsAtMs: past };
  t.deepEqual(await setup.wait(late), { failed: 'deadline_exceeded' });
  t.deepEqual(setup.abandoned, ['late']);
  t.is(outcomes.length, 0);
});

test('many responses that arrive at the same time, in one frame or in pieces, arrive whole', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const small = randomUUID();
  const response = setup.wait({ requestId: small });
  worker.send(small, 1, 0, 'accepted', Buffer.from(worker.id));
  worker.send(small, 1, 1, 'result', Buffer.from('small'));
  t.deepEqual(await response, { response: Buffer.from('small') });

  const lengths = fc.array(fc.integer({ min: 1, max: 20 * pieceBytes }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(lengths, fc.nat(255), async (all, seed) => {
      await Promise.all(
        all.map(async (length, i) => {
          const requestId = randomUUID();
          const bytes = Buffer.alloc(length, Buffer.from([seed, i, 1, 2, 3]));
          const outcome = setup.wait({ requestId });
          const sender = await startWorker(t, setup);
          await sender.serve(requestId, 1, length, split(bytes));
          t.true(bytes.equals(((await outcome) as { response: Buffer }).response));
        }),
      );
    }),
    { numRuns: 8 },
  );
});

test('a new attempt starts from scratch: pieces of the previous attempt are dropped, and use no budget', async (t) => {
  const setup = await setUp(t);
  const [first, second] = [await startWorker(t, setup), await startWorker(t, setup)];
  const requestId = randomUUID();
  const outcome = setup.wait({ requestId });
  const length = 13 * pieceBytes;
  await first.serve(requestId, 1, length, [Buffer.alloc(pieceBytes, 'old'), Buffer.alloc(pieceBytes, 'old')]);

  const bytes = Buffer.alloc(length, 'new');
  const pieces = split(bytes);
  second.send(requestId, 2, 0, 'accepted', Buffer.from(second.id));
  first.send(requestId, 1, 4, 'piece', Buffer.alloc(pieceBytes, 'old'));
  second.send(requestId, 2, 1, 'offered', encodeOffer(length));
  t.deepEqual(await second.nextControl(), {
    action: 'send',
    requestId,
    attempt: 2,
    upToByte: 12 * pieceBytes,
  });
  for (const [i, piece] of pieces.entries()) {
    first.send(requestId, 1, 5 + i, 'piece', Buffer.alloc(pieceBytes, 'old'));
    second.send(requestId, 2, 2 + i, 'piece', piece);
  }
  const { response } = (await outcome) as { response: Buffer };
  t.true(response.equals(bytes));
});

test('if a worker dies in the middle of an event of a stream, the stream fails when the next attempt begins, and that attempt is cancelled', async (t) => {
  const setup = await setUp(t);
  const [first, second] = [await startWorker(t, setup), await startWorker(t, setup)];
  const [whole, broken] = [randomUUID(), randomUUID()];
  const outcomes = [setup.wait({ requestId: whole }), setup.wait({ requestId: broken, mayRestart: false })];
  for (const requestId of [whole, broken]) {
    first.send(requestId, 1, 0, 'accepted', Buffer.from(first.id));
    first.send(requestId, 1, 1, 'delta', Buffer.from('data: '));
    second.send(requestId, 2, 0, 'accepted', Buffer.from(second.id));
  }
  second.send(whole, 2, 1, 'result', Buffer.from('end'));
  t.deepEqual(await Promise.all(outcomes), [
    { response: Buffer.from('end') },
    { failed: 'service_unavailable' },
  ]);
  t.like(await second.nextControl(), { action: 'cancel', requestId: broken });
});

test('when a new attempt begins, the budget requested for the previous attempt is immediately released to other requests', async (t) => {
  const setup = await setUp(t);
  const [first, second, third] = [
    await startWorker(t, setup),
    await startWorker(t, setup),
    await startWorker(t, setup),
  ];
  const [requestId, other] = [randomUUID(), randomUUID()];
  void setup.wait({ requestId });
  const response = setup.wait({ requestId: other });
  await first.serve(requestId, 1, 12 * pieceBytes, []);
  await first.nextControl();
  await third.serve(other, 1, 3, []);
  second.send(requestId, 2, 0, 'accepted', Buffer.from(second.id));
  t.deepEqual(await third.nextControl(), { action: 'send', requestId: other, attempt: 1, upToByte: 3 });
  third.send(other, 1, 2, 'piece', Buffer.from('abc'));
  t.deepEqual(await response, { response: Buffer.from('abc') });
});

test('if a piece is lost, the request fails instead of returning a response with a gap, and its worker is notified to cancel', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const requestId = randomUUID();
  const outcome = setup.wait({ requestId });
  const pieces = split(Buffer.alloc(3 * pieceBytes));
  await worker.serve(requestId, 1, 3 * pieceBytes, pieces.slice(0, 1));
  worker.send(requestId, 1, 4, 'piece', pieces[2]);
  t.deepEqual(await outcome, { failed: 'service_unavailable' });
  t.deepEqual(await worker.nextControl(), { action: 'cancel', requestId, isOurFault: true });
});

test('if a worker sends a piece again because it does not know that the piece arrived, the second copy is ignored', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const requestId = randomUUID();
  const outcome = setup.wait({ requestId });
  const bytes = randomBytes(2 * pieceBytes);
  const pieces = split(bytes);
  await worker.serve(requestId, 1, bytes.length, pieces.slice(0, 1));
  worker.send(requestId, 1, 2, 'piece', pieces[0]);
  worker.send(requestId, 1, 3, 'piece', pieces[1]);
  // `deepEqual` takes seconds for a buffer of this size.
  t.true(bytes.equals(((await outcome) as { response: Buffer }).response));
});

test('if a worker cannot send further pieces, the request fails with the error of the worker', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const requestId = randomUUID();
  const outcome = setup.wait({ requestId });
  await worker.serve(requestId, 1, 2 * pieceBytes, [Buffer.alloc(pieceBytes)]);
  worker.send(requestId, 1, 3, 'error', Buffer.from('{"code":"upstream_error","message":"Lost."}'));
  t.deepEqual(await outcome, { failed: 'upstream_error' });
});

test('a result that does not arrive is requested again; if its live worker is silent for 30 s, the request fails', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const requestId = randomUUID();
  const outcome = setup.wait({ requestId });
  await worker.serve(requestId, 1, 3 * pieceBytes, []);
  const ask = { action: 'send', requestId, attempt: 1, upToByte: 3 * pieceBytes };
  t.deepEqual(await worker.nextControl(), ask);
  setup.advance(2_000);
  t.deepEqual(await worker.nextControl(), ask);
  setup.advance(28_001);
  t.deepEqual(await outcome, { failed: 'service_unavailable' });
  for (;;) {
    const message = await worker.nextControl();
    if (message.action !== 'send') {
      t.deepEqual(message, { action: 'cancel', requestId, isOurFault: true });
      return;
    }
  }
});

test('if the worker of a result is dead, the caller keeps waiting, because another worker will take over', async (t) => {
  const setup = await setUp(t);
  const [deadWorker, liveWorker, nextWorker] = [
    await startWorker(t, setup),
    await startWorker(t, setup),
    await startWorker(t, setup),
  ];
  await deadWorker.die();
  const [requestAtDeadWorker, requestAtLiveWorker] = [randomUUID(), randomUUID()];
  const outcome = setup.wait({ requestId: requestAtDeadWorker });
  await deadWorker.serve(requestAtDeadWorker, 1, pieceBytes, []);
  const outcomeAtLiveWorker = setup.wait({ requestId: requestAtLiveWorker });
  await liveWorker.serve(requestAtLiveWorker, 1, pieceBytes, []);
  await liveWorker.nextControl();
  setup.advance(30_001);
  t.deepEqual(await outcomeAtLiveWorker, { failed: 'service_unavailable' });
  await nextWorker.serve(requestAtDeadWorker, 2, 3, [Buffer.from('abc')]);
  t.deepEqual(await outcome, { response: Buffer.from('abc') });
});

test('without any worker a request fails after 15 s, unless its response was already offered and charged', async (t) => {
  const setup = await setUp(t);
  // This worker does not serve the embedding queue.
  const worker = await startWorker(t, setup);
  const [queuedId, offeredId] = [randomUUID(), randomUUID()];
  const queuedOutcome = setup.wait({ requestId: queuedId, queue: 'embedding' });
  const outcome = setup.wait({ requestId: offeredId, queue: 'embedding' });
  await worker.serve(offeredId, 1, pieceBytes, []);
  await worker.nextControl();
  setup.advance(15_001);
  t.deepEqual(await queuedOutcome, { failed: 'service_unavailable' });
  t.deepEqual(setup.abandoned, [queuedId]);
  await worker.serve(offeredId, 2, 3, [Buffer.from('abc')]);
  t.deepEqual(await outcome, { response: Buffer.from('abc') });
});

test('a queue that has had no worker for 15 s refuses new requests immediately, until a worker is back', async (t) => {
  const setup = await setUp(t);
  let servedAgoMs: number | null = null;
  let checks = 0;
  setup.registry.findWorkers = (queues) => {
    checks += 1;
    return Promise.resolve(queues.map(() => ({ alive: new Set<string>(), servedAgoMs, faults: 0 })));
  };
  const callers = [setup.wait({ queue: 'chat' }), setup.wait({ queue: 'chat' })];
  setup.advance(15_001);
  const failed = { failed: 'service_unavailable' };
  t.deepEqual(await Promise.all(callers), [failed, failed]);
  t.like(
    setup.absences.find(({ queue }) => queue === 'chat'),
    { waiting: 2, refused: 0 },
  );
  await t.throwsAsync(setup.wait({ queue: 'chat' }), { code: 'service_unavailable' });
  servedAgoMs = 0;
  const seen = checks;
  await waitFor('the worker to be noticed', () => checks > seen + 1);
  const outcomes: Outcome[] = [];
  void setup.wait({ queue: 'chat' }).then((outcome) => outcomes.push(outcome));
  const later = checks;
  await waitFor('further checks', () => checks > later + 1);
  t.deepEqual(outcomes, []);
});

test('one caller that cannot be notified does not keep the others waiting', async (t) => {
  const setup = await setUp(t);
  const broken = randomUUID();
  void setup.wait({ requestId: broken, queue: 'embedding' });
  const [entry] = setup.replies.entries();
  entry!.pending.receiver.fail = () => {
    throw new Error('simulated');
  };
  const outcome = setup.wait({ queue: 'embedding' });
  setup.advance(15_001);
  t.deepEqual(await outcome, { failed: 'service_unavailable' });
  t.true(setup.lines.some(({ requestId, level }) => requestId === broken && level === 50));
});

test('after a Redis outage, no request fails before its worker has had time to send a heartbeat', async (t) => {
  const setup = await setUp(t);
  const findWorkers = setup.registry.findWorkers.bind(setup.registry);
  let checks = 0;
  let isUnavailable = true;
  setup.registry.findWorkers = async (queues) => {
    checks += 1;
    if (isUnavailable) throw new Error('simulated outage');
    return await findWorkers(queues);
  };
  const late = setup.wait({ workerId: randomUUID(), endsAtMs: Date.now() - 1, queue: 'chat' });
  const queued = setup.wait({ queue: 'chat' });
  await waitFor('a failing check', () => checks > 0);
  setup.advance(60_000);
  const failed = checks;
  await waitFor('another failing check', () => checks > failed);
  isUnavailable = false;
  await waitFor('checks that succeed', () => checks > failed + 3);
  t.deepEqual(setup.abandoned, []);
  setup.advance(5_001);
  t.deepEqual(await late, { failed: 'deadline_exceeded' });
  setup.advance(10_001);
  t.deepEqual(await queued, { failed: 'service_unavailable' });
});

// Serial, because it disconnects the subscriptions of all tests.
test.serial(
  'when the subscription is interrupted, no caller goes on waiting for pieces that may have been lost',
  async (t) => {
    const setup = await setUp(t);
    const worker = await startWorker(t, setup);
    const requestId = randomUUID();
    const outcome = setup.wait({ requestId });
    await worker.serve(requestId, 1, 2 * pieceBytes, [Buffer.alloc(pieceBytes)]);
    await setup.redis.client('KILL', 'TYPE', 'PUBSUB');
    t.deepEqual(await outcome, { failed: 'service_unavailable' });
    const hasSubscriber = async (channel: string): Promise<boolean> => {
      const [, listeners] = (await setup.redis.call('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number];
      return listeners === 1;
    };
    await waitFor('the process to listen again', async () => await hasSubscriber(setup.replies.channel));
    await waitFor(
      'the worker to listen again',
      async () => await hasSubscriber(redisChannels.control(worker.id)),
    );

    const later = randomUUID();
    const response = setup.wait({ requestId: later });
    await worker.serve(later, 1, 3, [Buffer.from('abc')]);
    t.deepEqual(await response, { response: Buffer.from('abc') });
  },
);

test('a request that has ended, but whose last frame is lost, fails within seconds, and a running request does not', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const [endedId, runningId] = [randomUUID(), randomUUID()];
  const outcomes: string[] = [];
  const record = (name: string) => (outcome: Outcome) => outcomes.push(`${name} ${JSON.stringify(outcome)}`);
  const wait = { workerId: worker.id, endsAtMs: Date.now() + 3_600_000 };
  void setup.wait({ ...wait, requestId: endedId, hasReservation: false }).then(record('ended'));
  void setup.wait({ ...wait, requestId: runningId }).then(record('running'));
  // A request fails only at the second check, because its last frame may still be in flight at the first.
  await waitFor('the failure', () => {
    setup.advance(1_000);
    return outcomes.length > 0;
  });
  t.deepEqual(outcomes, ['ended {"failed":"service_unavailable"}']);
  await waitFor('the worker to be cancelled', async () => (await worker.nextControl()).action === 'cancel');
  worker.send(runningId, 1, 0, 'result', Buffer.from('abc'));
  await waitFor('the other request to end', () => outcomes.length === 2);
});

test('if a worker dies after settling an image, the caller waits until another worker delivers the result', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const [image, chat] = [randomUUID(), randomUUID()];
  const outcomes: string[] = [];
  const wait = { workerId: worker.id, endsAtMs: Date.now() + 3_600_000, hasReservation: false };
  void setup.wait({ ...wait, requestId: image }).then(() => outcomes.push('image'));
  void setup.wait({ ...wait, requestId: chat, queue: 'chat' }).then(() => outcomes.push('chat'));
  await waitFor('the end of the chat, which no other worker delivers', () => {
    setup.advance(1_000);
    return outcomes.length > 0;
  });
  t.deepEqual(outcomes, ['chat']);
  worker.send(image, 1, 0, 'result', Buffer.from('abc'));
  await waitFor('the image', () => outcomes.at(-1) === 'image');
});

test('if a caller stops reading a response that it has paid for, the response is not considered lost', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const [pausedId, readId] = [randomUUID(), randomUUID()];
  const outcomes: string[] = [];
  const wait = { workerId: worker.id, endsAtMs: Date.now() + 3_600_000, hasReservation: false };
  void setup.wait({ ...wait, requestId: pausedId }).then(() => outcomes.push('paused'));
  const [entry] = setup.replies.entries();
  setup.replies.control(entry!.pending, 'pause');
  // Once this response has been found lost, enough checks have run to find the paused one lost too.
  void setup.wait({ ...wait, requestId: readId }).then(() => outcomes.push('read'));
  await waitFor('the end of the response that is read', () => {
    setup.advance(1_000);
    return outcomes.length > 0;
  });
  t.deepEqual(outcomes, ['read']);
  setup.replies.control(entry!.pending, 'resume');
  await waitFor('the other response to end once it is read', () => {
    setup.advance(1_000);
    return outcomes.at(-1) === 'paused';
  });
});

test('a cancelled request remains in flight until its worker reports the end or dies', async (t) => {
  const setup = await setUp(t);
  const { replies } = setup;
  const worker = await startWorker(t, setup);
  const [endingId, lostId, queuedId] = [randomUUID(), randomUUID(), randomUUID()];
  for (const requestId of [endingId, lostId]) void setup.wait({ requestId, workerId: worker.id });
  void setup.wait({ requestId: queuedId });
  for (const requestId of [endingId, lostId, queuedId]) t.true(replies.markDisconnected(requestId));
  t.is(replies.countOf('image', 'a'), 3);
  worker.send(endingId, 1, 0, 'delta', Buffer.from('more'));
  worker.send(endingId, 1, 1, 'error', Buffer.from('{"code":"job_cancelled","message":"left"}'));
  await waitFor('the end of the request to be noticed', () => replies.countOf('image', 'a') === 2);
  // No worker reports the end of a request that was removed from its queue.
  replies.endDisconnected(queuedId);
  t.is(replies.countOf('image', 'a'), 1);
  await worker.die();
  await waitFor('the death of its worker to be noticed', () => replies.countOf('image', 'a') === 0);
});

test('a worker that accepts a request without a pending reply is stopped; the caller is charged only if it disconnected', async (t) => {
  const setup = await setUp(t);
  const worker = await startWorker(t, setup);
  const unknown = randomUUID();
  worker.send(unknown, 1, 0, 'accepted', Buffer.from(worker.id));
  t.deepEqual(await worker.nextControl(), { action: 'cancel', requestId: unknown, isOurFault: true });
  const disconnected = randomUUID();
  void setup.wait({ requestId: disconnected });
  t.true(setup.replies.markDisconnected(disconnected));
  worker.send(disconnected, 1, 0, 'accepted', Buffer.from(worker.id));
  t.deepEqual(await worker.nextControl(), { action: 'cancel', requestId: disconnected });
});
