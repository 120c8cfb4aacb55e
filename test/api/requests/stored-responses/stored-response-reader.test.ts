import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { StoredResponses } from '../../../../api/requests/stored-responses/stored-responses.ts';
import type { FollowedResponse } from '../../../../api/requests/stored-responses/stored-response-reader.ts';
import type { HeartbeatRequest } from '../../../../shared/money/reservation-store.ts';
import { runAdmission } from '../../../../shared/money/admit-script.ts';
import { runSettlement } from '../../../../shared/work/settlement/settle-script.ts';
import type { AppError } from '../../../../shared/contract/errors.ts';
import { FairBudget } from '../../../../shared/fairness/fair-budget.ts';
import { handBackJob, startJob, takeJob } from '../../../../shared/work/jobs/run-job-scripts.ts';
import { placeJob } from '../../../../shared/work/jobs/place-job-script.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { ResponseStore, encodeStored } from '../../../../shared/work/replies/response-store.ts';
import { StoredFramesStore } from '../../../../shared/work/replies/stored-frames-store.ts';
import type { PooledBuffer } from '../../../../shared/platform/runtime/buffer-pool.ts';
import { runInBackground } from '../../../../shared/platform/runtime/run-in-background.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import {
  createRequest,
  storeStream,
  makeFrame,
  useObjects,
  type TestObjects,
} from '../../../support/stored-responses.ts';
import { admission, createHotAccount, usageEvent } from '../../../support/billing.ts';
import { useRedis } from '../../../support/use-redis.ts';
import { waitFor } from '../../../support/wait-for.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');
const MB = 1_000_000;

interface Setup extends TestObjects {
  readonly frames: StoredFramesStore;
  readonly responses: ResponseStore;
  readonly memory: FairBudget;
  readonly storedResponses: StoredResponses;
  /** Bytes of frames read from Redis. */
  readonly readBytes: () => number;
}

async function setUp(t: ExecutionContext, capacity = 100 * MB): Promise<Setup> {
  const objects = await useObjects(t);
  let read = 0;
  const frames = new StoredFramesStore(redis(), redis());
  const readFrames = frames.readFrames.bind(frames);
  frames.readFrames = async (...args) => {
    const found = await readFrames(...args);
    if ('bytes' in found) read += found.bytes.length;
    return found;
  };
  const responses = new ResponseStore(frames, objects.objects);
  const memory = new FairBudget({ capacity });
  const storedResponses = new StoredResponses({ redis: redis(), frames, responses, memory, log });
  return { ...objects, frames, responses, memory, storedResponses, readBytes: () => read };
}

interface Reading {
  readonly followed: FollowedResponse;
  readonly deltas: Buffer[];
  readonly end: Promise<PooledBuffer>;
}

/** @param onDelta called after each delta with the number received so far */
function follow(
  { storedResponses }: Pick<Setup, 'storedResponses'>,
  request: HeartbeatRequest,
  onDelta: (followed: FollowedResponse, count: number) => void = () => undefined,
): Reading {
  const deltas: Buffer[] = [];
  let resolve: (response: PooledBuffer) => void;
  let reject: (error: AppError) => void;
  const end = new Promise<PooledBuffer>((done, fail) => {
    resolve = done;
    reject = fail;
  });
  end.catch(() => undefined);
  const receiver = {
    delta: (bytes: Buffer) => {
      deltas.push(Buffer.from(bytes));
      onDelta(followed, deltas.length);
    },
    end: (response: PooledBuffer) => resolve(response),
    fail: (error: AppError) => reject(error),
  };
  const followed = storedResponses.follow(request, receiver, { hasMemory: false });
  return { followed, deltas, end };
}

async function waitForMemoryRelease({ memory }: Pick<Setup, 'memory'>): Promise<void> {
  await waitFor('the memory to be released', () => memory.held === 0);
}

const makeDeltas = (count: number, size: number): Buffer[] =>
  Array.from({ length: count }, () => randomBytes(size));

test('each byte of a stream is read from Redis only once, even if the reader pauses after every few events', async (t) => {
  const setup = await setUp(t);
  const request = createRequest();
  const deltas = makeDeltas(2_000, 3_250);
  const bytes = await storeStream(setup.frames, request, deltas);
  const reading = follow(setup, request, (followed, count) => {
    if (count % 3 !== 0) return;
    followed.pause();
    setImmediate(() => followed.resume());
  });
  await reading.end;
  t.true(Buffer.concat(reading.deltas).equals(Buffer.concat(deltas)));
  t.is(setup.readBytes(), bytes);
  await waitForMemoryRelease(setup);
});

test('memory for unread streams is limited for any number of streams, taken from the budget, and released when callers disconnect', async (t) => {
  const setup = await setUp(t, 4 * MB);
  const request = createRequest();
  const bytes = await storeStream(setup.frames, request, makeDeltas(100, 65_000));
  t.true(bytes > 6 * MB);
  const count = 60;
  const readings = Array.from({ length: count }, () =>
    follow(setup, request, (followed, deltas) => {
      // Each reader stops reading after three events, so that a backlog builds up.
      if (deltas === 3) followed.pause();
    }),
  );
  await waitFor('all readers to have paused', () => readings.every((one) => one.deltas.length === 3));
  t.true(setup.memory.held > 0);
  t.true(setup.memory.held <= 4 * MB);
  // The delivered bytes, the read-ahead windows within the budget, and a small window outside it for each stream.
  t.true(setup.readBytes() < count * (3 * 65_031 + 70_000) + 4 * MB, String(setup.readBytes()));
  for (const { followed } of readings) followed.cancel();
  await waitForMemoryRelease(setup);
});

test('a stream is read whole even if there is only memory for small windows', async (t) => {
  const setup = await setUp(t, 1 * MB);
  const request = createRequest();
  const deltas = makeDeltas(300, 9_000);
  await storeStream(setup.frames, request, deltas);
  const othersShare = await setup.memory.acquire('other', 1 * MB, {
    waitMs: 0,
    createError: () => new Error() as never,
  });
  const reading = follow(setup, request);
  await reading.end;
  t.true(Buffer.concat(reading.deltas).equals(Buffer.concat(deltas)));
  othersShare.release();
});

for (const { when, moveAt } of [
  { when: 'before it is read', moveAt: 0 },
  { when: 'while a reader is midway', moveAt: 150 },
  { when: 'when a reader is near the end', moveAt: 299 },
]) {
  test(`a stream that moves to the object store ${when} is unchanged, byte for byte`, async (t) => {
    const setup = await setUp(t);
    const request = createRequest();
    const deltas = makeDeltas(300, 9_000);
    const bytes = await storeStream(setup.frames, request, deltas);
    if (moveAt === 0) t.true(await setup.responses.move('frames', request, bytes));
    const reading = follow(setup, request, (followed, count) => {
      if (count !== moveAt) return;
      followed.pause();
      void setup.responses.move('frames', request, bytes).then((moved) => {
        t.true(moved);
        followed.resume();
      });
    });
    t.is((await reading.end).bytes.toString(), 'data: [DONE]\n\n');
    t.is(reading.deltas.length, deltas.length);
    t.true(Buffer.concat(reading.deltas).equals(Buffer.concat(deltas)));
    await waitForMemoryRelease(setup);
  });
}

test('if a first attempt has sent no output when a second starts, the response is that of the second, even after the move', async (t) => {
  const setup = await setUp(t);
  const request = createRequest();
  await setup.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'dead', 1));
  await setup.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'alive', 2));
  await setup.frames.append(request, 'delta', makeFrame(request, 'delta', 1, 'of the second', 2));
  // A frame that the first attempt, wrongly presumed dead, sends after the second has started.
  await setup.frames.append(request, 'delta', makeFrame(request, 'delta', 1, 'of the first', 1));
  const last = makeFrame(request, 'result', 2, 'end', 2);
  const { bytes } = (await setup.frames.append(request, 'result', last))!;
  const read = async (): Promise<string> => {
    const { deltas, end } = follow(setup, request);
    return `${(await end).bytes.toString()} ${Buffer.concat(deltas).toString()}`;
  };
  t.is(await read(), 'end of the second');
  t.true(await setup.responses.move('frames', request, bytes));
  t.is(await read(), 'end of the second');
});

test('an error is delivered unchanged, even if frames before it are missing', async (t) => {
  const setup = await setUp(t);
  const request = createRequest();
  await setup.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0));
  await setup.frames.append(request, 'delta', makeFrame(request, 'delta', 1, 'text'));
  const payload = JSON.stringify({ code: 'too_many_jobs', message: 'too much' });
  await setup.frames.append(request, 'error', makeFrame(request, 'error', 5, payload));
  await t.throwsAsync(follow(setup, request).end, { message: 'too much' });
});

test('whole responses are read only if there is memory for them; when one is released, the next one is read', async (t) => {
  const setup = await setUp(t, 3 * MB);
  const request = createRequest();
  const response = randomBytes(1 * MB);
  const stored = await setup.responses.put(request, response);
  await setup.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0));
  await setup.frames.append(request, 'stored', makeFrame(request, 'stored', 1, encodeStored(stored)));
  const ended: PooledBuffer[] = [];
  const readings = Array.from({ length: 10 }, () => follow(setup, request));
  for (const { end } of readings) void end.then((one) => ended.push(one)).catch(() => undefined);
  await waitFor('one response to be read', () => ended.length === 1);
  t.is(setup.memory.waiting, 9);
  let peakBytes = 0;
  // One caller disconnects while it waits; the other responses are read one after another.
  readings[9]!.followed.cancel();
  for (let read = 1; read <= 9; read++) {
    await waitFor(`response ${read}`, () => ended.length === read);
    peakBytes = Math.max(peakBytes, setup.memory.held);
    const { bytes, release } = ended[read - 1]!;
    t.true(bytes.equals(response));
    release();
  }
  t.true(peakBytes <= 2 * MB, 'an account gets at most half of the memory not held by others');
  t.is(setup.memory.held, 0);
  t.is(setup.memory.waiting, 0);
});

const jobQueue = { queue: 'chat', model: 'm' } as const;

/** A queued durable job. */
async function createJob(): Promise<HeartbeatRequest> {
  const accountId = await createHotAccount(redis(), 1_000_000_000n);
  const admitted = admission(accountId, { fixedNano: 1_000n });
  await runAdmission(redis(), admitted);
  const job = { id: admitted.requestId, accountId, ...jobQueue, timeoutMs: 60_000, body: Buffer.from('{}') };
  const jobFields = { operation: 'chat.completions', format: null, webhookUrl: null } as const;
  await placeJob(redis(), redis(), { ...job, ...jobFields });
  return { requestId: admitted.requestId, accountId };
}

/** Takes the job from its queue as this worker, and stores this response. @returns the attempt */
async function runJob(
  { responses }: Setup,
  request: HeartbeatRequest,
  worker: string,
  response: string,
): Promise<number> {
  const { job } = await takeJob(redis(), jobQueue, request.accountId, worker);
  await startJob(redis(), job!);
  await responses.keep({ ...request, jobAttempt: job!.attempt }, Buffer.from(response));
  return job!.attempt;
}

test('the response of a durable job is delivered only after settlement, and is that of the settled attempt', async (t) => {
  const setup = await setUp(t);
  const request = await createJob();
  const { accountId, requestId } = request;
  const { end } = follow(setup, request);
  let hasEnded = false;
  runInBackground(
    end.then(() => (hasEnded = true)),
    'reading',
    log,
  );
  const first = await runJob(setup, request, 'a', 'the response of a worker presumed dead');
  await waitFor('the reader to find the response', () => setup.readBytes() > 0);
  await handBackJob(redis(), { id: requestId, accountId, attempt: first });
  const second = await runJob(setup, request, 'b', 'the response');
  t.false(hasEnded);
  const event = usageEvent(accountId, requestId);
  // An attempt that was handed back does not settle the job.
  const late = await runSettlement(redis(), event, 10n, { jobAttempt: first });
  t.is(late.outcome, 'absent');
  const settled = await runSettlement(redis(), event, 10n, { jobAttempt: second });
  t.is(settled.outcome, 'settled');
  t.is((await end).bytes.toString(), 'the response');
  t.is((await follow(setup, request).end).bytes.toString(), 'the response');
});

test('if the stored response of a durable job is lost, reading it fails immediately; if the job failed, its error is reported', async (t) => {
  const setup = await setUp(t);
  const [lost, failed] = [await createJob(), await createJob()];
  for (const request of [lost, failed]) {
    const { accountId, requestId } = request;
    const attempt = await runJob(setup, request, 'a', 'x');
    const error = request === failed ? ({ code: 'upstream_rejected', message: 'no' } as const) : null;
    await runSettlement(redis(), usageEvent(accountId, requestId), 10n, { jobAttempt: attempt, error });
  }
  await redis().del(redisKeys.storedFrames(lost.accountId, lost.requestId));
  t.is((await t.throwsAsync<AppError>(follow(setup, lost).end)).code, 'service_unavailable');
  const error = await t.throwsAsync<AppError>(follow(setup, failed).end);
  t.is(error.code, 'upstream_rejected');
  t.is(error.publicMessage, 'no');
});
