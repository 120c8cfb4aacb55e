import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { startEmbeddedS3 } from '../../../scripts/embedded/s3/server.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import type { AdmittedRequest } from '../../../shared/money/admitted-request.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { ResponseStore, decodeStored } from '../../../shared/work/replies/response-store.ts';
import { decodeFrames, decodeOffer, pieceBytes, type Frame } from '../../../shared/work/replies/frame.ts';
import { StoredFramesStore } from '../../../shared/work/replies/stored-frames-store.ts';
import { ReplyPublisher } from '../../../workers/replies/reply-publisher.ts';
import { ReplyWriter } from '../../../workers/replies/reply-writer.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { ObjectStore } from '../../../shared/platform/storage/object-store.ts';
import { ActiveRuns } from '../../../workers/intake/active-runs.ts';
import type { RequestRun } from '../../../workers/runs/job-context.ts';
import { cutPieces, sendResult } from '../../../workers/runs/send-result.ts';
import { listenTo } from '../../support/listen-to.ts';
import { openTestRedis, type OpenedRedis } from '../../support/stores.ts';
import { waitFor } from '../../support/wait-for.ts';

const log = createLogger('test', 'silent');
const noStores = { responses: undefined as never, mover: undefined as never };
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
  /** Requests bytes, like the process that waits for the result. */
  readonly requestUpTo: (upToByte: number) => void;
  /** Stops listening, as when that process dies. */
  readonly stopListening: () => Promise<void>;
  /** The next frame that the process receives. */
  readonly receive: () => Promise<Frame>;
  /** Waits until everything sent has arrived. @returns the frames that `receive` has not returned yet */
  readonly findUnread: () => Promise<readonly Frame[]>;
  readonly send: (parts: readonly Buffer[], maxSendingMs?: number) => Promise<void>;
}

async function setUp(t: ExecutionContext): Promise<Rig> {
  const channel = randomUUID();
  const [redis, payloads, listener] = await Promise.all([
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
    onNoListeners: (name) => runs.cancelChannel(name),
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
    requestUpTo: (upToByte) => runs.control({ action: 'send', requestId, attempt: 1, upToByte }),
    async stopListening() {
      listener.close();
      await waitFor('the channel to have no listener', async () => (await redis.spublish(channel, '')) === 0);
    },
    async receive() {
      while (frames.length === 0) frames.push(...decodeFrames(await listener.receive()));
      return frames.shift()!;
    },
    async findUnread() {
      await publisher.sent();
      // An empty message, which has no frames, marks the end.
      if ((await payloads.spublish(channel, '')) === 0) return frames;
      for (;;) {
        const message = await listener.receive();
        if (message.length === 0) return frames;
        frames.push(...decodeFrames(message));
      }
    },
    send: async (parts, maxSendingMs) => {
      await sendResult({ ...noStores, ...(maxSendingMs && { maxSendingMs }) }, request, run, parts);
    },
  };
}

test('all pieces but the last have the same size, none is empty, and together they are the parts in order', (t) => {
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

test('a piece consists of views of the parts, without copies', (t) => {
  const part = Buffer.from('abcdef');
  const [first, second] = [...cutPieces([part], 4)];
  part.fill('x');
  t.deepEqual([first, second], [[Buffer.from('xxxx')], [Buffer.from('xx')]]);
});

test('a result of up to 64 KB is sent as one frame; a larger one is offered, and sent when it is requested', async (t) => {
  const { run, receive, findUnread, send, requestUpTo } = await setUp(t);
  const bytes = randomBytes(64 * 1024);
  await send([bytes.subarray(0, 10), bytes.subarray(10)]);
  t.like(await receive(), { kind: 'result', sequence: 0, payload: bytes });

  const larger = [bytes, Buffer.from('.')];
  const sent = send(larger);
  const offer = await receive();
  t.like(offer, { kind: 'offered', sequence: 1 });
  t.is(decodeOffer(offer.payload), bytes.length + 1);
  t.deepEqual(await findUnread(), []);
  requestUpTo(bytes.length + 1);
  t.like(await receive(), { kind: 'piece', sequence: 2, payload: Buffer.concat(larger) });
  await sent;
  t.deepEqual(await findUnread(), []);
  t.false(run.signal.aborted);
});

test('no piece is sent before all of its bytes are requested, and the pieces add up to the result', async (t) => {
  const { receive, findUnread, send, requestUpTo } = await setUp(t);
  const parts = [randomBytes(pieceBytes - 3), randomBytes(10), Buffer.alloc(0), randomBytes(3 * pieceBytes)];
  const whole = Buffer.concat(parts);
  const sent = send(parts);
  t.is(decodeOffer((await receive()).payload), whole.length);
  requestUpTo(pieceBytes - 1);
  t.deepEqual(await findUnread(), []);
  requestUpTo(2 * pieceBytes);
  const pieces = [await receive(), await receive()];
  requestUpTo(pieceBytes);
  t.deepEqual(await findUnread(), []);
  requestUpTo(whole.length);
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

test('a result that is to be stored is written to the store, and its location is sent instead', async (t) => {
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
  const responses = new ResponseStore(new StoredFramesStore(redis, payloads), objects);
  const parts = [randomBytes(pieceBytes), randomBytes(100)];
  const request = { requestId, accountId: 'ann' };
  await sendResult({ ...noStores, responses }, { ...request, claimHash: 'claim' }, run, parts);
  const { kind, payload } = await receive();
  t.is(kind, 'stored');
  t.deepEqual(await responses.read(request, decodeStored(payload)), Buffer.concat(parts));
  t.deepEqual(await findUnread(), []);
});

const disconnects: readonly { readonly how: string; readonly disconnect: (rig: Rig) => Promise<unknown> }[] =
  [
    {
      how: 'the caller disconnects',
      disconnect: async ({ runs, requestId, findUnread }) => {
        await findUnread();
        runs.control({ action: 'cancel', requestId });
      },
    },
    {
      how: 'the process that reads it dies',
      disconnect: async ({ stopListening, requestUpTo }) => {
        await stopListening();
        requestUpTo(2 * pieceBytes);
      },
    },
  ];
for (const { how, disconnect } of disconnects) {
  test(`a result stops midway without an error if ${how}`, async (t) => {
    const rig = await setUp(t);
    const sent = rig.send([Buffer.alloc(4 * pieceBytes)]);
    await rig.receive();
    rig.requestUpTo(pieceBytes);
    t.is((await rig.receive()).kind, 'piece');
    await disconnect(rig);
    await sent;
    t.true(rig.run.signal.aborted);
    rig.requestUpTo(4 * pieceBytes);
    t.deepEqual(await rig.findUnread(), []);
  });
}

test('if nobody requests the remaining bytes of a result, it ends with an error', async (t) => {
  const { requestId, run, requestUpTo, receive } = await setUp(t);
  const whenRequested = (beyond: number): Promise<number> =>
    beyond === 0 ? run.whenRequested(beyond) : Promise.reject(new Error('nobody asked for the result'));
  const request = { requestId, accountId: 'ann', claimHash: null };
  const parts = [Buffer.alloc(2 * pieceBytes)];
  const sent = sendResult(noStores, request, { ...run, whenRequested }, parts);
  t.is((await receive()).kind, 'offered');
  requestUpTo(pieceBytes);
  t.is((await receive()).kind, 'piece');
  const error = await receive();
  t.like(error, { kind: 'error', sequence: 2 });
  t.like(JSON.parse(error.payload.toString()), { code: 'service_unavailable' });
  await sent;
});

test('if the connection breaks while a piece is sent, the piece is sent again with the same sequence number', async (t) => {
  const rig = await setUp(t);
  const bytes = randomBytes(2 * pieceBytes);
  const sent = rig.send([bytes]);
  await rig.receive();
  // The worker notices the closed connection only when sending a piece fails.
  const killer = await connect(t, 'commands');
  const id = await rig.payloads.client('ID');
  await killer.client('KILL', 'ID', String(id));
  rig.requestUpTo(bytes.length);
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

test('if a piece cannot be sent for as long as it is tried, the result ends with an error', async (t) => {
  const rig = await setUp(t);
  const sent = rig.send([Buffer.alloc(2 * pieceBytes)], 1_000);
  await rig.receive();
  rig.payloads.disconnect();
  rig.requestUpTo(pieceBytes);
  await sent;
  const error = await rig.receive();
  t.is(error.kind, 'error');
  t.like(JSON.parse(error.payload.toString()), { code: 'service_unavailable' });
});

test('storing the result of a durable job is retried while Redis is down, and fails immediately if the account has no space left', async (t) => {
  const request = { requestId: randomUUID(), accountId: randomUUID(), claimHash: null, jobAttempt: 1 };
  const failures: AppError[] = [new AppError('service_unavailable')];
  let tries = 0;
  let moved = 0;
  const stores = {
    responses: {
      keep: () => {
        tries += 1;
        const failure = failures.shift();
        return failure === undefined ? Promise.resolve({ size: {} }) : Promise.reject(failure);
      },
    },
    mover: { queueFrames: () => (moved += 1) },
  } as never;
  const afterSettlement = await sendResult(stores, request, {} as never, [Buffer.from('answer')]);
  t.is(tries, 2);
  // The response must not move to the object store before the attempt has settled the job.
  t.is(moved, 0);
  afterSettlement?.();
  t.is(moved, 1);
  failures.push(new AppError('too_many_jobs'));
  await t.throwsAsync(sendResult(stores, request, {} as never, [Buffer.from('answer')]), {
    code: 'too_many_jobs',
  });
  t.is(tries, 3);
});
