import { randomBytes, randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { PendingReplies } from '../../../api/replies/pending-replies.ts';
import type { PendingReply } from '../../../api/replies/pending-reply.ts';
import type { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import type { AdmittedRequest } from '../../../shared/billing/admitted-request.ts';
import type { QueueName } from '../../../shared/queue/job-kinds.ts';
import { heartbeatIntervalMs } from '../../../shared/queue/heartbeat-times.ts';
import { WorkerRegistryStore } from '../../../shared/queue/worker-registry-store.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../../shared/redis/redis-client.ts';
import { redisChannels, redisKeys, shardOf } from '../../../shared/redis/redis-keys.ts';
import { Subscriber } from '../../../shared/redis/subscriber-client.ts';
import { FrameOrder } from '../../../api/replies/frame-order.ts';
import { encodeFrame, encodeOffer, pieceBytes, type Frame } from '../../../shared/reply/frame.ts';
import type { ControlMessage } from '../../../shared/reply/worker-control.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { listenTo } from '../../support/listen-to.ts';
import { openTestRedis, type OpenedRedis } from '../../support/stores.ts';
import { waitFor } from '../../support/wait-for.ts';

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

type Outcome = { readonly answer: Buffer } | { readonly failed: string };

interface Desk {
  readonly redis: RedisClient;
  readonly registry: WorkerRegistryStore;
  readonly waiters: PendingReplies;
  readonly abandoned: readonly string[];
  readonly wait: (request: {
    requestId?: string;
    /** Whether it holds a reservation, as all do that have not ended. */
    isHeld?: boolean;
    workerId?: string;
    endsAtMs?: number;
    queue?: QueueName;
    mayRestart?: boolean;
  }) => Promise<Outcome>;
  readonly pass: (ms: number) => void;
}

async function openDesk(t: ExecutionContext): Promise<Desk> {
  const redis = await connect(t);
  const subscriber = new Subscriber(server.url, log);
  const registry = new WorkerRegistryStore(redis);
  let nowMs = 0;
  const memory = new FairBudget({ capacity: 512_000_000 });
  const waiters = new PendingReplies(randomUUID(), redis, subscriber, registry, memory, log, () => nowMs);
  t.teardown(() => waiters.close());
  t.teardown(() => subscriber.close());
  await subscriber.start();
  const abandoned: string[] = [];
  const owner = {
    check: () => undefined,
    abandon: ({ request }: PendingReply) => void abandoned.push(request.requestId),
    withdraw: () => false,
  };
  return {
    redis,
    registry,
    waiters,
    abandoned,
    wait({
      requestId = randomUUID(),
      isHeld = true,
      workerId,
      endsAtMs = Date.now() + 60_000,
      queue = 'image',
      mayRestart = true,
    }) {
      const held = redisKeys.reservations(shardOf('a'));
      if (isHeld) redis.hset(held, requestId, 'a 1 0 1').catch(() => undefined);
      return new Promise((resolve) => {
        const request = { requestId, accountId: 'a', deadlineAtMs: endsAtMs, claimHash: null };
        waiters.add(
          {
            request: request as AdmittedRequest,
            queue,
            receiver: {
              delta: () => undefined,
              mayRestart: () => mayRestart,
              end: ({ bytes }) => resolve({ answer: bytes }),
              fail: (error: AppError) => resolve({ failed: error.code }),
            },
            order: new FrameOrder(),
            workerId: workerId ?? null,
            hasOutput: false,
            tokens: 0,
          },
          owner,
        );
      });
    },
    pass(ms) {
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
  /** Accepts, offers, and sends as many of the pieces as there are, each once it is asked for. */
  readonly serve: (
    requestId: string,
    attempt: number,
    length: number,
    pieces: readonly Buffer[],
  ) => Promise<void>;
  /** The next thing that this worker was told or asked. */
  readonly hear: () => Promise<ControlMessage>;
  /** It is not heard of any more. */
  readonly die: () => Promise<void>;
}

const load = { active: 1, inputsInLine: 0, bulkRuns: 1, faults: 0 };

async function hire(t: ExecutionContext, { redis, waiters, registry }: Desk): Promise<TestWorker> {
  const id = randomUUID();
  await registry.beat('image', id, load);
  // One that is under way when the test ends finds its client closed.
  const beat = (): void => void registry.beat('image', id, load).catch(() => undefined);
  const heart = setInterval(beat, heartbeatIntervalMs);
  t.teardown(() => clearInterval(heart));
  const ears = await listenTo(t, server.url, redisChannels.control(id));
  const hear = async (): Promise<ControlMessage> =>
    JSON.parse((await ears.receive()).toString()) as ControlMessage;
  const send: TestWorker['send'] = (requestId, attempt, sequence, kind, payload = Buffer.alloc(0)) => {
    const frame = encodeFrame({ requestId, attempt, sequence, kind, tokens: 0, payload });
    redis.spublish(waiters.channel, frame).catch(() => undefined);
  };
  return {
    id,
    send,
    hear,
    async die() {
      clearInterval(heart);
      await registry.leave('image', id);
    },
    async serve(requestId, attempt, length, pieces) {
      send(requestId, attempt, 0, 'accepted', Buffer.from(id));
      send(requestId, attempt, 1, 'offered', encodeOffer(length));
      let sent = 0;
      let asked = 0;
      for (const [i, piece] of pieces.entries()) {
        while (asked < sent + piece.length) {
          const message = await hear();
          if (message.action === 'send' && message.requestId === requestId) asked = message.upToByte;
        }
        send(requestId, attempt, 2 + i, 'piece', piece);
        sent += piece.length;
      }
    },
  };
}

function cut(bytes: Buffer): Buffer[] {
  const count = Math.ceil(bytes.length / pieceBytes);
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * pieceBytes, (i + 1) * pieceBytes));
}

test('a caller whose worker died with the job waits until the deadline, and while the worker lives for longer', async (t) => {
  const desk = await openDesk(t);
  const living = await hire(t, desk);
  const past = Date.now() - 1;
  const outcomes: Outcome[] = [];
  void desk.wait({ workerId: living.id, endsAtMs: past }).then((outcome) => outcomes.push(outcome));
  void desk.wait({ workerId: 'dead' }).then((outcome) => outcomes.push(outcome));
  const late = { requestId: 'late', workerId: 'dead', endsAtMs: past };
  t.deepEqual(await desk.wait(late), { failed: 'deadline_exceeded' });
  t.deepEqual(desk.abandoned, ['late']);
  t.is(outcomes.length, 0);
});

test('answers in a frame and answers in pieces come whole, however many come at once', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const small = randomUUID();
  const answer = desk.wait({ requestId: small });
  worker.send(small, 1, 0, 'accepted', Buffer.from(worker.id));
  worker.send(small, 1, 1, 'result', Buffer.from('small'));
  t.deepEqual(await answer, { answer: Buffer.from('small') });

  const lengths = fc.array(fc.integer({ min: 1, max: 20 * pieceBytes }), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(lengths, fc.nat(255), async (all, seed) => {
      await Promise.all(
        all.map(async (length, i) => {
          const requestId = randomUUID();
          const bytes = Buffer.alloc(length, Buffer.from([seed, i, 1, 2, 3]));
          const outcome = desk.wait({ requestId });
          const own = await hire(t, desk);
          await own.serve(requestId, 1, length, cut(bytes));
          t.true(bytes.equals(((await outcome) as { answer: Buffer }).answer));
        }),
      );
    }),
    { numRuns: 8 },
  );
});

test('another attempt begins anew: pieces of the earlier one are neither part of the answer nor take room', async (t) => {
  const desk = await openDesk(t);
  const [first, second] = [await hire(t, desk), await hire(t, desk)];
  const requestId = randomUUID();
  const outcome = desk.wait({ requestId });
  const length = 13 * pieceBytes;
  await first.serve(requestId, 1, length, [Buffer.alloc(pieceBytes, 'old'), Buffer.alloc(pieceBytes, 'old')]);

  const bytes = Buffer.alloc(length, 'new');
  const pieces = cut(bytes);
  second.send(requestId, 2, 0, 'accepted', Buffer.from(second.id));
  first.send(requestId, 1, 4, 'piece', Buffer.alloc(pieceBytes, 'old'));
  second.send(requestId, 2, 1, 'offered', encodeOffer(length));
  t.deepEqual(await second.hear(), { action: 'send', requestId, attempt: 2, upToByte: 12 * pieceBytes });
  for (const [i, piece] of pieces.entries()) {
    first.send(requestId, 1, 5 + i, 'piece', Buffer.alloc(pieceBytes, 'old'));
    second.send(requestId, 2, 2 + i, 'piece', piece);
  }
  const { answer } = (await outcome) as { answer: Buffer };
  t.true(answer.equals(bytes));
});

test('a stream whose worker died within an event fails where another begins, which is told to stop', async (t) => {
  const desk = await openDesk(t);
  const [first, second] = [await hire(t, desk), await hire(t, desk)];
  const [whole, broken] = [randomUUID(), randomUUID()];
  const outcomes = [desk.wait({ requestId: whole }), desk.wait({ requestId: broken, mayRestart: false })];
  for (const requestId of [whole, broken]) {
    first.send(requestId, 1, 0, 'accepted', Buffer.from(first.id));
    first.send(requestId, 1, 1, 'delta', Buffer.from('data: '));
    second.send(requestId, 2, 0, 'accepted', Buffer.from(second.id));
  }
  second.send(whole, 2, 1, 'result', Buffer.from('end'));
  t.deepEqual(await Promise.all(outcomes), [
    { answer: Buffer.from('end') },
    { failed: 'service_unavailable' },
  ]);
  t.like(await second.hear(), { action: 'cancel', requestId: broken });
});

test('as soon as another attempt begins, what the earlier one was asked for is room for others', async (t) => {
  const desk = await openDesk(t);
  const [first, second, third] = [await hire(t, desk), await hire(t, desk), await hire(t, desk)];
  const [requestId, other] = [randomUUID(), randomUUID()];
  void desk.wait({ requestId });
  const answer = desk.wait({ requestId: other });
  await first.serve(requestId, 1, 12 * pieceBytes, []);
  await first.hear();
  await third.serve(other, 1, 3, []);
  second.send(requestId, 2, 0, 'accepted', Buffer.from(second.id));
  t.deepEqual(await third.hear(), { action: 'send', requestId: other, attempt: 1, upToByte: 3 });
  third.send(other, 1, 2, 'piece', Buffer.from('abc'));
  t.deepEqual(await answer, { answer: Buffer.from('abc') });
});

test('a lost piece is an error, never an answer with a hole, and its worker is told to stop', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const requestId = randomUUID();
  const outcome = desk.wait({ requestId });
  const pieces = cut(Buffer.alloc(3 * pieceBytes));
  await worker.serve(requestId, 1, 3 * pieceBytes, pieces.slice(0, 1));
  worker.send(requestId, 1, 4, 'piece', pieces[2]);
  t.deepEqual(await outcome, { failed: 'service_unavailable' });
  t.deepEqual(await worker.hear(), { action: 'cancel', requestId, isOurFault: true });
});

test('a piece that comes twice, as its worker could not know that it had left, is taken once', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const requestId = randomUUID();
  const outcome = desk.wait({ requestId });
  const bytes = randomBytes(2 * pieceBytes);
  const pieces = cut(bytes);
  await worker.serve(requestId, 1, bytes.length, pieces.slice(0, 1));
  worker.send(requestId, 1, 2, 'piece', pieces[0]);
  worker.send(requestId, 1, 3, 'piece', pieces[1]);
  t.deepEqual(await outcome, { answer: bytes });
});

test('a worker that can send no more ends the answer with its error', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const requestId = randomUUID();
  const outcome = desk.wait({ requestId });
  await worker.serve(requestId, 1, 2 * pieceBytes, [Buffer.alloc(pieceBytes)]);
  worker.send(requestId, 1, 3, 'error', Buffer.from('{"code":"upstream_error","message":"Lost."}'));
  t.deepEqual(await outcome, { failed: 'upstream_error' });
});

test('a result that does not come is asked for again; when its living worker is silent for 30 s, it is given up', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const requestId = randomUUID();
  const outcome = desk.wait({ requestId });
  await worker.serve(requestId, 1, 3 * pieceBytes, []);
  const ask = { action: 'send', requestId, attempt: 1, upToByte: 3 * pieceBytes };
  t.deepEqual(await worker.hear(), ask);
  desk.pass(2_000);
  t.deepEqual(await worker.hear(), ask);
  desk.pass(28_001);
  t.deepEqual(await outcome, { failed: 'service_unavailable' });
  for (;;) {
    const message = await worker.hear();
    if (message.action !== 'send') {
      t.deepEqual(message, { action: 'cancel', requestId, isOurFault: true });
      return;
    }
  }
});

test('a result whose worker is dead is waited for: another will have it', async (t) => {
  const desk = await openDesk(t);
  const [dead, living, next] = [await hire(t, desk), await hire(t, desk), await hire(t, desk)];
  await dead.die();
  const [ofDead, ofLiving] = [randomUUID(), randomUUID()];
  const outcome = desk.wait({ requestId: ofDead });
  await dead.serve(ofDead, 1, pieceBytes, []);
  const given = desk.wait({ requestId: ofLiving });
  await living.serve(ofLiving, 1, pieceBytes, []);
  await living.hear();
  desk.pass(30_001);
  t.deepEqual(await given, { failed: 'service_unavailable' });
  await next.serve(ofDead, 2, 3, [Buffer.from('abc')]);
  t.deepEqual(await outcome, { answer: Buffer.from('abc') });
});

test('without any worker a caller is told after 15 s, but for one whose answer was on its way and is paid for', async (t) => {
  const desk = await openDesk(t);
  // Of its queue there is nobody.
  const worker = await hire(t, desk);
  const [untaken, offered] = [randomUUID(), randomUUID()];
  const told = desk.wait({ requestId: untaken, queue: 'embedding' });
  const outcome = desk.wait({ requestId: offered, queue: 'embedding' });
  await worker.serve(offered, 1, pieceBytes, []);
  await worker.hear();
  desk.pass(15_001);
  t.deepEqual(await told, { failed: 'service_unavailable' });
  t.deepEqual(desk.abandoned, [untaken]);
  await worker.serve(offered, 2, 3, [Buffer.from('abc')]);
  t.deepEqual(await outcome, { answer: Buffer.from('abc') });
});

test('a worker that was missing while nobody waited is not held against who comes then', async (t) => {
  const desk = await openDesk(t);
  const first = desk.wait({ queue: 'chat' });
  desk.pass(15_001);
  t.deepEqual(await first, { failed: 'service_unavailable' });
  desk.pass(60_000);
  const outcomes: Outcome[] = [];
  void desk.wait({ queue: 'chat' }).then((outcome) => outcomes.push(outcome));
  // A second look at the workers is over when this one is told.
  const late = { workerId: 'dead', endsAtMs: Date.now() - 1, queue: 'chat' } as const;
  t.deepEqual(await desk.wait(late), { failed: 'deadline_exceeded' });
  t.is(outcomes.length, 0);
});

test('after an outage of Redis no request is given up before its worker could say that it lives', async (t) => {
  const desk = await openDesk(t);
  const findAlive = desk.registry.findAlive.bind(desk.registry);
  let looks = 0;
  let isAway = true;
  desk.registry.findAlive = async (queue) => {
    looks += 1;
    if (isAway) throw new Error('away');
    return await findAlive(queue);
  };
  const late = desk.wait({ workerId: randomUUID(), endsAtMs: Date.now() - 1, queue: 'chat' });
  const queued = desk.wait({ queue: 'chat' });
  await waitFor('a look that fails', () => looks > 0);
  desk.pass(60_000);
  const failed = looks;
  await waitFor('another', () => looks > failed);
  isAway = false;
  await waitFor('looks that succeed', () => looks > failed + 3);
  t.deepEqual(desk.abandoned, []);
  desk.pass(5_001);
  t.deepEqual(await late, { failed: 'deadline_exceeded' });
  desk.pass(10_001);
  t.deepEqual(await queued, { failed: 'service_unavailable' });
});

// Serial: it cuts everybody's.
test.serial('when the subscription is cut nobody goes on waiting for pieces that may be lost', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const requestId = randomUUID();
  const outcome = desk.wait({ requestId });
  await worker.serve(requestId, 1, 2 * pieceBytes, [Buffer.alloc(pieceBytes)]);
  await desk.redis.client('KILL', 'TYPE', 'PUBSUB');
  t.deepEqual(await outcome, { failed: 'service_unavailable' });
  const isHeard = async (channel: string): Promise<boolean> => {
    const [, listeners] = (await desk.redis.call('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number];
    return listeners === 1;
  };
  await waitFor('the process to listen again', async () => await isHeard(desk.waiters.channel));
  await waitFor('the worker to', async () => await isHeard(redisChannels.control(worker.id)));

  const later = randomUUID();
  const answer = desk.wait({ requestId: later });
  await worker.serve(later, 1, 3, [Buffer.from('abc')]);
  t.deepEqual(await answer, { answer: Buffer.from('abc') });
});

test('a request that has ended without its last frame coming is answered within seconds, one that goes on is not', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const [ended, goesOn] = [randomUUID(), randomUUID()];
  const outcomes: string[] = [];
  const note = (name: string) => (outcome: Outcome) => outcomes.push(`${name} ${JSON.stringify(outcome)}`);
  const wait = { workerId: worker.id, endsAtMs: Date.now() + 3_600_000 };
  void desk.wait({ ...wait, requestId: ended, isHeld: false }).then(note('ended'));
  void desk.wait({ ...wait, requestId: goesOn }).then(note('goes on'));
  // A frame that is on its way at the first look comes before the second.
  await waitFor('the answer', () => {
    desk.pass(1_000);
    return outcomes.length > 0;
  });
  t.deepEqual(outcomes, ['ended {"failed":"service_unavailable"}']);
  await waitFor('the worker to be told', async () => (await worker.hear()).action === 'cancel');
  worker.send(goesOn, 1, 0, 'result', Buffer.from('abc'));
  await waitFor('the other', () => outcomes.length === 2);
});

test('what a worker settled before it died is waited for until the next one can bring it', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const [image, chat] = [randomUUID(), randomUUID()];
  const outcomes: string[] = [];
  const wait = { workerId: worker.id, endsAtMs: Date.now() + 3_600_000, isHeld: false };
  void desk.wait({ ...wait, requestId: image }).then(() => outcomes.push('image'));
  void desk.wait({ ...wait, requestId: chat, queue: 'chat' }).then(() => outcomes.push('chat'));
  await waitFor('the end of the chat, which nobody runs again', () => {
    desk.pass(1_000);
    return outcomes.length > 0;
  });
  t.deepEqual(outcomes, ['chat']);
  worker.send(image, 1, 0, 'result', Buffer.from('abc'));
  await waitFor('the image', () => outcomes.at(-1) === 'image');
});

test('a caller who stops reading an answer that is paid for is not taken for one whose answer was lost', async (t) => {
  const desk = await openDesk(t);
  const worker = await hire(t, desk);
  const [paused, read] = [randomUUID(), randomUUID()];
  const outcomes: string[] = [];
  const wait = { workerId: worker.id, endsAtMs: Date.now() + 3_600_000, isHeld: false };
  void desk.wait({ ...wait, requestId: paused }).then(() => outcomes.push('paused'));
  const [entry] = desk.waiters.entries();
  desk.waiters.control(entry!.waiter, 'pause');
  // It has as many looks as the other.
  void desk.wait({ ...wait, requestId: read }).then(() => outcomes.push('read'));
  await waitFor('the end of the one that is read', () => {
    desk.pass(1_000);
    return outcomes.length > 0;
  });
  t.deepEqual(outcomes, ['read']);
  desk.waiters.control(entry!.waiter, 'resume');
  await waitFor('the end of the other, once it is read', () => {
    desk.pass(1_000);
    return outcomes.at(-1) === 'paused';
  });
});

test('a request whose caller left is under way until its worker says that it has ended, or is gone', async (t) => {
  const desk = await openDesk(t);
  const { waiters } = desk;
  const worker = await hire(t, desk);
  const [told, lost, queued] = [randomUUID(), randomUUID(), randomUUID()];
  for (const requestId of [told, lost]) void desk.wait({ requestId, workerId: worker.id });
  void desk.wait({ requestId: queued });
  for (const requestId of [told, lost, queued]) t.true(waiters.leave(requestId));
  t.is(waiters.countOf('image', 'a'), 3);
  worker.send(told, 1, 0, 'delta', Buffer.from('more'));
  worker.send(told, 1, 1, 'error', Buffer.from('{"code":"job_cancelled","message":"left"}'));
  await waitFor('its end', () => waiters.countOf('image', 'a') === 2);
  // One that is taken off its queue has nothing to be told of.
  waiters.endLeft(queued);
  t.is(waiters.countOf('image', 'a'), 1);
  await worker.die();
  await waitFor('the end of its worker', () => waiters.countOf('image', 'a') === 0);
});
