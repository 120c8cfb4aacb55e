import { randomBytes, randomUUID } from 'node:crypto';
import test from 'ava';
import fc from 'fast-check';
import { claimLifetimeSeconds } from '../../../../shared/money/idempotency-claim.ts';
import { maxStoredBytesPerResponse, maxStoredBytesInFlight } from '../../../../shared/money/stored-bytes.ts';
import type { HeartbeatRequest } from '../../../../shared/money/reservation-store.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { decodeFrames } from '../../../../shared/work/replies/frame.ts';
import { StoredFramesStore } from '../../../../shared/work/replies/stored-frames-store.ts';
import {
  createRequest,
  storeStream,
  makeFrame,
  setStoredBytes,
  readStoredBytes,
} from '../../../support/stored-responses.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);
const createStore = (): StoredFramesStore => new StoredFramesStore(redis(), redis());

async function readAll(store: StoredFramesStore, request: HeartbeatRequest): Promise<Buffer> {
  return await store.readPart('frames', request, 0, 2 ** 30);
}

test('concurrently appended frames are stored in order, even if Redis has not loaded the script yet', async (t) => {
  const store = createStore();
  const request = createRequest();
  await redis().script('FLUSH');
  const sequences = Array.from({ length: 300 }, (_, i) => i);
  const appends: Promise<unknown>[] = [];
  for (const sequence of sequences) {
    appends.push(store.append(request, 'delta', makeFrame(request, 'delta', sequence, `${sequence}`)));
    // Some frames share a pipeline, others are sent alone.
    if (sequence % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(appends);
  const frames = decodeFrames(await readAll(store, request));
  t.deepEqual(
    frames.map(({ sequence }) => sequence),
    sequences,
  );
});

test('bytes can be read from any position, and there are none beyond the end', async (t) => {
  const store = createStore();
  const request = createRequest();
  t.deepEqual(await store.readFrames(request, 0, 100), { bytes: Buffer.alloc(0) });
  const bytes = await storeStream(store, request, [randomBytes(3_000), randomBytes(10)]);
  const whole = await readAll(store, request);
  t.is(whole.length, bytes);
  for (const [from, maxBytes] of [
    [0, 1],
    [17, 1_000],
    [bytes - 5, 100],
    [bytes, 100],
  ] as const) {
    t.deepEqual(await store.readFrames(request, from, maxBytes), {
      bytes: whole.subarray(from, from + maxBytes),
    });
  }
});

test('moved frames are replaced by a short marker, which tells a reader at any position how many bytes were moved', async (t) => {
  const store = createStore();
  const request = createRequest();
  const bytes = await storeStream(store, request, [randomBytes(3_000)]);
  const ttl = await redis().ttl(redisKeys.storedFrames(request.accountId, request.requestId));
  t.true(await store.markMoved('frames', request, bytes));
  for (const from of [0, 40, bytes - 1, bytes])
    t.deepEqual(await store.readFrames(request, from, 100), { movedBytes: bytes });
  const key = redisKeys.storedFrames(request.accountId, request.requestId);
  t.true((await redis().strlen(key)) < 50);
  t.true(Math.abs((await redis().ttl(key)) - ttl) <= 2, 'it expires at the same time as before');
  // A frame that arrives after the move does not change the marker.
  await store.append(request, 'error', makeFrame(request, 'error', 0, '{}', 9));
  t.deepEqual(await store.readFrames(request, 0, 100), { movedBytes: bytes });
});

test('frames stay in Redis if another frame was added while they were copied', async (t) => {
  const store = createStore();
  const request = createRequest();
  const bytes = await storeStream(store, request, [randomBytes(3_000)]);
  await store.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'other', 2));
  const before = await readAll(store, request);
  t.false(await store.markMoved('frames', request, bytes));
  t.deepEqual(await readAll(store, request), before);
});

test('a failure expires after minutes, because it is never replayed; a response is stored for longer than its claim', async (t) => {
  const store = createStore();
  const [failed, answered] = [createRequest(), createRequest()];
  for (const request of [failed, answered]) {
    await store.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'worker'));
    await store.append(request, 'delta', makeFrame(request, 'delta', 1, 'text'));
  }
  await store.append(failed, 'error', makeFrame(failed, 'error', 2, '{}'));
  await store.append(answered, 'result', makeFrame(answered, 'result', 2, 'end'));
  const ttlOf = ({ accountId, requestId }: HeartbeatRequest): Promise<number> =>
    redis().ttl(redisKeys.storedFrames(accountId, requestId));
  const short = await ttlOf(failed);
  t.true(short >= 5 * 60 - 2 && short <= 15 * 60, String(short));
  t.true((await ttlOf(answered)) > claimLifetimeSeconds);
  const { sum, ...buckets } = await readStoredBytes(redis(), failed.accountId);
  t.is(sum, (await readAll(store, failed)).length);
  const [[expiresAt, bytes]] = Object.entries(buckets) as [[string, number]];
  t.is(sum, bytes, 'all bytes are counted in the slot of their expiry');
  t.true(Math.abs(Number(expiresAt) - Date.now() / 1_000 - short) < 5);
});

test('for any sequence of steps, the byte count of an account equals the bytes stored for it in Redis', async (t) => {
  const store = createStore();
  const step = fc.record({
    which: fc.nat(3),
    act: fc.constantFrom('accepted', 'delta', 'delta', 'result', 'error', 'answer', 'move', 'dropAnswer'),
    size: fc.integer({ min: 1, max: 5_000 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const accountId = randomUUID();
      const requests = Array.from({ length: 4 }, () => createRequest(accountId));
      const lengthOf = async (request: HeartbeatRequest): Promise<{ frames: number; answer: number }> => ({
        frames: await redis().strlen(redisKeys.storedFrames(accountId, request.requestId)),
        answer: await redis().strlen(redisKeys.storedResponse(accountId, request.requestId)),
      });
      for (const { which, act, size } of steps) {
        const request = requests[which]!;
        const { frames, answer } = await lengthOf(request);
        if (act === 'answer') await store.putResponse(request, Buffer.alloc(size));
        else if (act === 'move') {
          if (frames > 0) await store.markMoved('frames', request, frames);
        } else if (act === 'dropAnswer') {
          if (answer > 0) await store.markMoved('answer', request, answer);
        } else await store.append(request, act, makeFrame(request, act, 0, Buffer.alloc(size)));
      }
      const lengths = await Promise.all(requests.map(lengthOf));
      const held = lengths.reduce((sum, { frames, answer }) => sum + frames + answer, 0);
      const { sum = 0, ...buckets } = await readStoredBytes(redis(), accountId);
      t.is(sum, held);
      t.is(
        Object.values(buckets).reduce((a, b) => a + b, 0),
        held,
      );
    }),
    { numRuns: 40 },
  );
});

test('a delta that exceeds the limit for one response is not stored, but the final frame of the response is', async (t) => {
  const store = createStore();
  const request = createRequest();
  const key = redisKeys.storedFrames(request.accountId, request.requestId);
  await store.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'worker'));
  await redis().setrange(key, maxStoredBytesPerResponse - 100, 'x');
  const before = await redis().strlen(key);
  t.is(await store.append(request, 'delta', makeFrame(request, 'delta', 1, Buffer.alloc(200))), null);
  t.is(await redis().strlen(key), before);
  t.truthy(await store.append(request, 'error', makeFrame(request, 'error', 2, '{}')));
});

test("an account's bytes in Redis are limited, for streams in flight and for responses that the object store rejected", async (t) => {
  const store = createStore();
  const request = createRequest();
  await store.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'worker'));
  await setStoredBytes(redis(), request.accountId, maxStoredBytesInFlight - 50);
  t.is(await store.append(request, 'delta', makeFrame(request, 'delta', 1, Buffer.alloc(200))), null);
  await t.throwsAsync(store.putResponse(request, Buffer.alloc(100)), { message: /without the header/ });
  const other = createRequest();
  t.truthy(await store.append(other, 'delta', makeFrame(other, 'delta', 1, Buffer.alloc(200))));
});

test('expired bytes no longer count towards the limit of an account', async (t) => {
  const store = createStore();
  const request = createRequest();
  await setStoredBytes(redis(), request.accountId, maxStoredBytesInFlight + 1, -20);
  const frame = makeFrame(request, 'delta', 1, 'text');
  t.deepEqual(await store.append(request, 'delta', frame), {
    bytes: frame.length,
    isAboveMoveThreshold: false,
  });
  t.is((await readStoredBytes(redis(), request.accountId))['sum'], frame.length);
});
