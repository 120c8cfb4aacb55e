import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { StoredResponses } from '../../../api/stored-responses/stored-responses.ts';
import type { FollowedResponse } from '../../../api/stored-responses/stored-response-reader.ts';
import type { HeldRequest } from '../../../shared/billing/reservation-store.ts';
import { runAdmission } from '../../../shared/billing/admit-script.ts';
import { runSettlement } from '../../../shared/settlement/settle-script.ts';
import type { AppError } from '../../../shared/contract/errors.ts';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import { handBackJob, startJob, takeJob } from '../../../shared/jobs/run-job-scripts.ts';
import { placeJob } from '../../../shared/jobs/place-job-script.ts';
import { redisKeys } from '../../../shared/redis/redis-keys.ts';
import { ResponseStore, encodeStored } from '../../../shared/reply/response-store.ts';
import { StoredFramesStore } from '../../../shared/reply/stored-frames-store.ts';
import type { PooledBuffer } from '../../../shared/runtime/buffer-pool.ts';
import { runInBackground } from '../../../shared/runtime/run-in-background.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import {
  createRequest,
  keepStream,
  makeFrame,
  useObjects,
  type TestObjects,
} from '../../support/kept-answers.ts';
import { admission, createHotAccount, usageEvent } from '../../support/billing.ts';
import { useRedis } from '../../support/use-redis.ts';
import { waitFor } from '../../support/wait-for.ts';

const redis = useRedis(test);
const log = createLogger('test', 'silent');
const MB = 1_000_000;

interface Rig extends TestObjects {
  readonly frames: StoredFramesStore;
  readonly answers: ResponseStore;
  readonly memory: FairBudget;
  readonly kept: StoredResponses;
  /** Bytes of frames that were read from Redis. */
  readonly readBytes: () => number;
}

async function setUp(t: ExecutionContext, capacity = 100 * MB): Promise<Rig> {
  const objects = await useObjects(t);
  let read = 0;
  const frames = new StoredFramesStore(redis(), redis());
  const readFrames = frames.readFrames.bind(frames);
  frames.readFrames = async (...args) => {
    const found = await readFrames(...args);
    if ('bytes' in found) read += found.bytes.length;
    return found;
  };
  const answers = new ResponseStore(frames, objects.objects);
  const memory = new FairBudget({ capacity });
  const kept = new StoredResponses({ redis: redis(), frames, answers, memory, log });
  return { ...objects, frames, answers, memory, kept, readBytes: () => read };
}

interface Reading {
  readonly followed: FollowedResponse;
  readonly deltas: Buffer[];
  readonly end: Promise<PooledBuffer>;
}

/** @param pausesAfter a delta of each so many makes the receiver pause */
function follow(
  { kept }: Pick<Rig, 'kept'>,
  request: HeldRequest,
  onDelta: (followed: FollowedResponse, count: number) => void = () => undefined,
): Reading {
  const deltas: Buffer[] = [];
  let resolve: (answer: PooledBuffer) => void;
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
    end: (answer: PooledBuffer) => resolve(answer),
    fail: (error: AppError) => reject(error),
  };
  const followed = kept.follow(request, receiver, { hasMemory: false });
  return { followed, deltas, end };
}

async function waitForNothingHeld({ memory }: Pick<Rig, 'memory'>): Promise<void> {
  await waitFor('the memory to be given back', () => memory.held === 0);
}

const makeDeltas = (count: number, size: number): Buffer[] =>
  Array.from({ length: count }, () => randomBytes(size));

test('a stream that is read with a pause after every few events is read from Redis once', async (t) => {
  const rig = await setUp(t);
  const request = createRequest();
  const deltas = makeDeltas(2_000, 3_250);
  const bytes = await keepStream(rig.frames, request, deltas);
  const reading = follow(rig, request, (followed, count) => {
    if (count % 3 !== 0) return;
    followed.pause();
    setImmediate(() => followed.resume());
  });
  await reading.end;
  t.true(Buffer.concat(reading.deltas).equals(Buffer.concat(deltas)));
  t.is(rig.readBytes(), bytes);
  await waitForNothingHeld(rig);
});

test('what unread streams hold is bounded whatever their number, counted, and given back when their callers go', async (t) => {
  const rig = await setUp(t, 4 * MB);
  const request = createRequest();
  const bytes = await keepStream(rig.frames, request, makeDeltas(100, 65_000));
  t.true(bytes > 6 * MB);
  const count = 60;
  const readings = Array.from({ length: count }, () =>
    follow(rig, request, (followed, deltas) => {
      // It goes on long enough to show that there is a backlog, and then takes nothing any more.
      if (deltas === 3) followed.pause();
    }),
  );
  await waitFor('all to have paused', () => readings.every((one) => one.deltas.length === 3));
  t.true(rig.memory.held > 0);
  t.true(rig.memory.held <= 4 * MB);
  // Beyond what was handed over: the counted windows, and a small one of each.
  t.true(rig.readBytes() < count * (3 * 65_031 + 70_000) + 4 * MB, String(rig.readBytes()));
  for (const { followed } of readings) followed.cancel();
  await waitForNothingHeld(rig);
});

test('a stream is read whole although there is no memory for more than small windows', async (t) => {
  const rig = await setUp(t, 1 * MB);
  const request = createRequest();
  const deltas = makeDeltas(300, 9_000);
  await keepStream(rig.frames, request, deltas);
  const all = await rig.memory.acquire('other', 1 * MB, { waitMs: 0, refuse: () => new Error() as never });
  const reading = follow(rig, request);
  await reading.end;
  t.true(Buffer.concat(reading.deltas).equals(Buffer.concat(deltas)));
  all.release();
});

for (const { when, moveAt } of [
  { when: 'before it is read', moveAt: 0 },
  { when: 'while a reader is midway', moveAt: 150 },
  { when: 'while a reader is near its end', moveAt: 299 },
]) {
  test(`a stream that moves to the object store ${when} is the same, byte for byte`, async (t) => {
    const rig = await setUp(t);
    const request = createRequest();
    const deltas = makeDeltas(300, 9_000);
    const bytes = await keepStream(rig.frames, request, deltas);
    if (moveAt === 0) t.true(await rig.answers.move('frames', request, bytes));
    const reading = follow(rig, request, (followed, count) => {
      if (count !== moveAt) return;
      followed.pause();
      void rig.answers.move('frames', request, bytes).then((moved) => {
        t.true(moved);
        followed.resume();
      });
    });
    t.is((await reading.end).bytes.toString(), 'data: [DONE]\n\n');
    t.is(reading.deltas.length, deltas.length);
    t.true(Buffer.concat(reading.deltas).equals(Buffer.concat(deltas)));
    await waitForNothingHeld(rig);
  });
}

test('a first attempt without output and a second one are one answer, also after they have moved', async (t) => {
  const rig = await setUp(t);
  const request = createRequest();
  await rig.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'dead', 1));
  await rig.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'alive', 2));
  await rig.frames.append(request, 'delta', makeFrame(request, 'delta', 1, 'of the second', 2));
  // What the first one sends when it was not dead after all.
  await rig.frames.append(request, 'delta', makeFrame(request, 'delta', 1, 'of the first', 1));
  const last = makeFrame(request, 'result', 2, 'end', 2);
  const { bytes } = (await rig.frames.append(request, 'result', last))!;
  const read = async (): Promise<string> => {
    const { deltas, end } = follow(rig, request);
    return `${(await end).bytes.toString()} ${Buffer.concat(deltas).toString()}`;
  };
  t.is(await read(), 'end of the second');
  t.true(await rig.answers.move('frames', request, bytes));
  t.is(await read(), 'end of the second');
});

test('an error is told as it is, also where frames before it were not kept', async (t) => {
  const rig = await setUp(t);
  const request = createRequest();
  await rig.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0));
  await rig.frames.append(request, 'delta', makeFrame(request, 'delta', 1, 'text'));
  const payload = JSON.stringify({ code: 'too_many_jobs', message: 'too much' });
  await rig.frames.append(request, 'error', makeFrame(request, 'error', 5, payload));
  await t.throwsAsync(follow(rig, request).end, { message: 'too much' });
});

test('of whole answers no more are read than there is memory for, and the next is when one is given back', async (t) => {
  const rig = await setUp(t, 3 * MB);
  const request = createRequest();
  const answer = randomBytes(1 * MB);
  const stored = await rig.answers.put(request, answer);
  await rig.frames.append(request, 'accepted', makeFrame(request, 'accepted', 0));
  await rig.frames.append(request, 'stored', makeFrame(request, 'stored', 1, encodeStored(stored)));
  const ended: PooledBuffer[] = [];
  const readings = Array.from({ length: 10 }, () => follow(rig, request));
  for (const { end } of readings) void end.then((one) => ended.push(one)).catch(() => undefined);
  await waitFor('one to be read', () => ended.length === 1);
  t.is(rig.memory.waiting, 9);
  let most = 0;
  // One leaves while it waits; the others have their turns.
  readings[9]!.followed.cancel();
  for (let read = 1; read <= 9; read++) {
    await waitFor(`answer ${read}`, () => ended.length === read);
    most = Math.max(most, rig.memory.held);
    const { bytes, release } = ended[read - 1]!;
    t.true(bytes.equals(answer));
    release();
  }
  t.true(most <= 2 * MB, 'an account has half of what others leave it');
  t.is(rig.memory.held, 0);
  t.is(rig.memory.waiting, 0);
});

const line = { queue: 'chat', model: 'm' } as const;

/** A durable job that waits. */
async function createJob(): Promise<HeldRequest> {
  const accountId = await createHotAccount(redis(), 1_000_000_000n);
  const asked = admission(accountId, { fixedNano: 1_000n });
  await runAdmission(redis(), asked);
  const job = { id: asked.requestId, accountId, ...line, timeoutMs: 60_000, body: Buffer.from('{}') };
  const rest = { operation: 'chat.completions', format: null, webhookUrl: null } as const;
  await placeJob(redis(), redis(), { ...job, ...rest });
  return { requestId: asked.requestId, accountId };
}

/** A worker takes the job, and leaves this answer. @returns its attempt */
async function runJob(
  { answers }: Rig,
  request: HeldRequest,
  worker: string,
  answer: string,
): Promise<number> {
  const { job } = await takeJob(redis(), line, request.accountId, worker);
  await startJob(redis(), job!);
  await answers.keep({ ...request, jobAttempt: job!.attempt }, Buffer.from(answer));
  return job!.attempt;
}

test('of a durable job the answer is told that it ended with, and no earlier than that', async (t) => {
  const rig = await setUp(t);
  const request = await createJob();
  const { accountId, requestId } = request;
  const { end } = follow(rig, request);
  let hasEnded = false;
  runInBackground(
    end.then(() => (hasEnded = true)),
    'reading',
    log,
  );
  const first = await runJob(rig, request, 'a', 'the answer of a worker that was given up');
  await waitFor('the reader to find it', () => rig.readBytes() > 0);
  await handBackJob(redis(), { id: requestId, accountId, attempt: first });
  const second = await runJob(rig, request, 'b', 'the answer');
  t.false(hasEnded);
  const event = usageEvent(accountId, requestId);
  // One that was given up ends nothing.
  const late = await runSettlement(redis(), event, 10n, { jobAttempt: first });
  t.is(late.outcome, 'absent');
  const settled = await runSettlement(redis(), event, 10n, { jobAttempt: second });
  t.is(settled.outcome, 'settled');
  t.is((await end).bytes.toString(), 'the answer');
  t.is((await follow(rig, request).end).bytes.toString(), 'the answer');
});

test('a durable job whose kept answer is lost is told of at once, and one that failed with its reason', async (t) => {
  const rig = await setUp(t);
  const [lost, failed] = [await createJob(), await createJob()];
  for (const request of [lost, failed]) {
    const { accountId, requestId } = request;
    const attempt = await runJob(rig, request, 'a', 'x');
    const error = request === failed ? ({ code: 'upstream_rejected', message: 'no' } as const) : null;
    await runSettlement(redis(), usageEvent(accountId, requestId), 10n, { jobAttempt: attempt, error });
  }
  await redis().del(redisKeys.storedFrames(lost.accountId, lost.requestId));
  t.is((await t.throwsAsync<AppError>(follow(rig, lost).end)).code, 'service_unavailable');
  const error = await t.throwsAsync<AppError>(follow(rig, failed).end);
  t.is(error.code, 'upstream_rejected');
  t.is(error.publicMessage, 'no');
});
