import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { startEmbeddedS3 } from '../../../scripts/embedded/s3/server.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../../shared/billing/admitted-request.ts';
import { createRedis, waitUntilReady, type RedisClient } from '../../../shared/redis/redis-client.ts';
import { ResponseStore, decodeStored } from '../../../shared/reply/response-store.ts';
import { decodeFrames, decodeOffer, pieceBytes, type Frame } from '../../../shared/reply/frame.ts';
import { StoredFramesStore } from '../../../shared/reply/stored-frames-store.ts';
import { ReplyPublisher } from '../../../workers/replies/reply-publisher.ts';
import { ReplyWriter } from '../../../workers/replies/reply-writer.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { ObjectStore } from '../../../shared/storage/object-store.ts';
import { ActiveRuns } from '../../../workers/intake/active-runs.ts';
import type { RequestRun } from '../../../workers/runs/job-context.ts';
import { cutPieces, sendResult } from '../../../workers/runs/send-result.ts';
import { listenTo } from '../../support/listen-to.ts';
import { openTestRedis, type OpenedRedis } from '../../support/stores.ts';
import { waitFor } from '../../support/wait-for.ts';

const log = createLogger('test', 'silent');
const noStores = { answers: undefined as never, mover: undefined as never };
let server: OpenedRedis;

test.before(async () => {
  server = await openTestRedis();
});
test.after.always(() => server.close());

async function connect(t: ExecutionContext, purpose: 'commands' | 'payloads'): Promise<RedisClient> {
  const client = createRedis(server.url, purpose, log);
  t.teardown(() => client.disconnect());
  await waitUntilReady(client);
  return client;
}

interface Rig {
  readonly requestId: string;
  readonly redis: RedisClient;
  readonly payloads: RedisClient;
  readonly runs: ActiveRuns;
  readonly run: RequestRun;
  /** Acts as the process that waits for the response. */
  readonly ask: (upToByte: number) => void;
  /** Disconnects, as that process may do. */
  readonly leave: () => Promise<void>;
  /** The next frame that arrives. */
  readonly receive: () => Promise<Frame>;
  /** Frames that have arrived but were not received yet, once everything that was sent has arrived. */
  readonly findUnread: () => Promise<readonly Frame[]>;
  readonly send: (parts: readonly Buffer[]) => Promise<void>;
}

async function setUp(t: ExecutionContext): Promise<Rig> {
  const channel = randomUUID();
  const [redis, payloads, ears] = await Promise.all([
    connect(t, 'commands'),
    connect(t, 'payloads'),
    listenTo(t, server.url, channel),
  ]);
  const frames: Frame[] = [];
  const runs = new ActiveRuns();
  const storedFrames = new StoredFramesStore(redis, payloads);
  const publisher = new ReplyPublisher({
    workerId: 'worker',
    redis,
    payloads,
    storedFrames,
    log,
    onNoListeners: (deaf) => runs.cancelChannel(deaf),
  });
  const request = { requestId: randomUUID(), accountId: 'ann', claimHash: null } as AdmittedRequest;
  const { requestId } = request;
  const started = runs.start(request, channel, 1);
  t.teardown(() => started.end());
  const run = { ...started, reply: new ReplyWriter(publisher, channel, request, 1), log };
  return {
    requestId,
    redis,
    payloads,
    runs,
    run,
    ask: (upToByte) => runs.control({ action: 'send', requestId, attempt: 1, upToByte }),
    async leave() {
      ears.close();
      await waitFor('no subscribers to remain', async () => (await redis.spublish(channel, '')) === 0);
    },
    async receive() {
      while (frames.length === 0) frames.push(...decodeFrames(await ears.receive()));
      return frames.shift()!;
    },
    async findUnread() {
      await publisher.sent();
      // An empty message after all others; it has no frames.
      if ((await payloads.spublish(channel, '')) === 0) return frames;
      for (;;) {
        const message = await ears.receive();
        if (message.length === 0) return frames;
        frames.push(...decodeFrames(message));
      }
    },
    send: async (parts) => {
      await sendResult(noStores, request, run, parts);
    },
  };
}

test('all pieces have the same size except the last, which is not empty, and contain the bytes of the parts in order', (t) => {
  const parts = fc.array(fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)));
  fc.assert(
    fc.property(parts, fc.integer({ min: 1, max: 70 }), (all, size) => {
      const pieces = [...cutPieces(all, size)].map((views) => Buffer.concat(views));
      t.true(pieces.slice(0, -1).every((piece) => piece.length === size));
      t.true(pieces.every((piece) => piece.length > 0 && piece.length <= size));
      t.deepEqual(Buffer.concat(pieces), Buffer.concat(all));
    }),
  );
});

test('a piece consists of views: nothing is copied', (t) => {
  const part = Buffer.from('abcdef');
  const [first, second] = [...cutPieces([part], 4)];
  part.fill('x');
  t.deepEqual([first, second], [[Buffer.from('xxxx')], [Buffer.from('xx')]]);
});

test('a response of up to 64 KB is one frame; one byte more is offered in pieces', async (t) => {
  const { run, receive, findUnread, send, ask } = await setUp(t);
  const bytes = randomBytes(64 * 1024);
  await send([bytes.subarray(0, 10), bytes.subarray(10)]);
  t.like(await receive(), { kind: 'result', sequence: 0, payload: bytes });

  const larger = [bytes, Buffer.from('.')];
  const sent = send(larger);
  const offer = await receive();
  t.like(offer, { kind: 'offered', sequence: 1 });
  t.is(decodeOffer(offer.payload), bytes.length + 1);
  t.deepEqual(await findUnread(), []);
  ask(bytes.length + 1);
  t.like(await receive(), { kind: 'piece', sequence: 2, payload: Buffer.concat(larger) });
  await sent;
  t.deepEqual(await findUnread(), []);
  t.false(run.signal.aborted);
});

test('no piece is sent before all of it is requested, and in the end the pieces are the response', async (t) => {
  const { receive, findUnread, send, ask } = await setUp(t);
  const parts = [randomBytes(pieceBytes - 3), randomBytes(10), Buffer.alloc(0), randomBytes(3 * pieceBytes)];
  const whole = Buffer.concat(parts);
  const sent = send(parts);
  t.is(decodeOffer((await receive()).payload), whole.length);
  ask(pieceBytes - 1);
  t.deepEqual(await findUnread(), []);
  ask(2 * pieceBytes);
  const pieces = [await receive(), await receive()];
  ask(pieceBytes);
  t.deepEqual(await findUnread(), []);
  ask(whole.length);
  while (Buffer.concat(pieces.map(({ payload }) => payload)).length < whole.length)
    pieces.push(await receive());
  await sent;
  t.deepEqual(
    pieces.map(({ kind, sequence, payload }) => [kind, sequence, payload.length]),
    [pieceBytes, pieceBytes, pieceBytes, pieceBytes, 7].map((length, i) => ['piece', i + 1, length]),
  );
  t.true(Buffer.concat(pieces.map(({ payload }) => payload)).equals(whole));
  t.deepEqual(await findUnread(), []);
});

test('a response for an Idempotency-Key is stored instead, and its location is reported', async (t) => {
  const { run, requestId, redis, payloads, receive, findUnread } = await setUp(t);
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const credentials = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };
  const s3 = await startEmbeddedS3({ dir, ...credentials });
  t.teardown(() => s3.close());
  const objects = new ObjectStore({
    endpoint: s3.endpoint,
    region: 'us-east-1',
    bucket: 'kept',
    publicUrl: null,
    manageBucket: 'auto',
    ...credentials,
  });
  t.teardown(() => objects.close());
  await objects.prepareBucket();
  const answers = new ResponseStore(new StoredFramesStore(redis, payloads), objects);
  const parts = [randomBytes(pieceBytes), randomBytes(100)];
  const request = { requestId, accountId: 'ann' };
  await sendResult({ ...noStores, answers }, { ...request, claimHash: 'claim' }, run, parts);
  const { kind, payload } = await receive();
  t.is(kind, 'stored');
  t.deepEqual(await answers.read(request, decodeStored(payload)), Buffer.concat(parts));
  t.deepEqual(await findUnread(), []);
});

const departures: readonly { readonly how: string; readonly depart: (rig: Rig) => Promise<unknown> }[] = [
  {
    how: 'whose caller leaves',
    depart: async ({ runs, requestId, findUnread }) => {
      await findUnread();
      runs.control({ action: 'cancel', requestId });
    },
  },
  {
    how: 'whose reader’s process dies',
    depart: async ({ leave, ask }) => {
      await leave();
      ask(2 * pieceBytes);
    },
  },
];
for (const { how, depart } of departures) {
  test(`a response ${how} ends midway without a message`, async (t) => {
    const rig = await setUp(t);
    const sent = rig.send([Buffer.alloc(4 * pieceBytes)]);
    await rig.receive();
    rig.ask(pieceBytes);
    t.is((await rig.receive()).kind, 'piece');
    await depart(rig);
    await sent;
    t.true(rig.run.signal.aborted);
    rig.ask(4 * pieceBytes);
    t.deepEqual(await rig.findUnread(), []);
  });
}

test('a response with no further requests ends with an error', async (t) => {
  const { requestId, run, ask, receive } = await setUp(t);
  const whenRequested = (beyond: number): Promise<number> =>
    beyond === 0 ? run.whenRequested(beyond) : Promise.reject(new Error('nobody asked for the result'));
  const request = { requestId, accountId: 'ann', claimHash: null };
  const parts = [Buffer.alloc(2 * pieceBytes)];
  const sent = sendResult(noStores, request, { ...run, whenRequested }, parts);
  t.is((await receive()).kind, 'offered');
  ask(pieceBytes);
  t.is((await receive()).kind, 'piece');
  const error = await receive();
  t.like(error, { kind: 'error', sequence: 2 });
  t.like(JSON.parse(error.payload.toString()), { code: 'service_unavailable' });
  await sent;
});

test('a piece that a cut connection may have lost is sent again unchanged', async (t) => {
  const rig = await setUp(t);
  const bytes = randomBytes(2 * pieceBytes);
  const sent = rig.send([bytes]);
  await rig.receive();
  // The worker detects the cut when the piece is not sent.
  const killer = await connect(t, 'commands');
  const id = await rig.payloads.client('ID');
  await killer.client('KILL', 'ID', String(id));
  rig.ask(bytes.length);
  const pieces = new Map<number, Buffer>();
  while (pieces.size < 2) {
    const { kind, sequence, payload } = await rig.receive();
    t.is(kind, 'piece');
    pieces.set(sequence, payload);
  }
  await sent;
  t.deepEqual([...pieces.keys()], [1, 2]);
  t.true(Buffer.concat([...pieces.values()]).equals(bytes));
});

test('a response with a piece that cannot be sent for half a minute ends with an error', async (t) => {
  t.timeout(60_000);
  const rig = await setUp(t);
  const sent = rig.send([Buffer.alloc(2 * pieceBytes)]);
  await rig.receive();
  rig.payloads.disconnect();
  rig.ask(pieceBytes);
  await sent;
  const error = await rig.receive();
  t.is(error.kind, 'error');
  t.like(JSON.parse(error.payload.toString()), { code: 'service_unavailable' });
});

test('the response of a durable job waits for Redis to be back, and fails immediately if the account has no space', async (t) => {
  const request = { requestId: randomUUID(), accountId: randomUUID(), claimHash: null, jobAttempt: 1 };
  const failures: AppError[] = [new AppError('service_unavailable')];
  let tries = 0;
  let moved = 0;
  const stores = {
    answers: {
      keep: () => {
        tries += 1;
        const failure = failures.shift();
        return failure === undefined ? Promise.resolve({ size: {} }) : Promise.reject(failure);
      },
    },
    mover: { frames: () => (moved += 1) },
  } as never;
  const afterSettlement = await sendResult(stores, request, undefined as never, [Buffer.from('answer')]);
  t.is(tries, 2);
  // Nothing may be moved for an attempt that does not settle the job.
  t.is(moved, 0);
  afterSettlement?.();
  t.is(moved, 1);
  failures.push(new AppError('too_many_jobs'));
  await t.throwsAsync(sendResult(stores, request, undefined as never, [Buffer.from('answer')]), {
    code: 'too_many_jobs',
  });
  t.is(tries, 3);
});
