import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import test from 'ava';
import type { AppError } from '../../../../shared/contract/errors.ts';
import { redisKeys } from '../../../../shared/platform/redis/redis-keys.ts';
import { ResponseStore } from '../../../../shared/work/replies/response-store.ts';
import { StoredFramesStore } from '../../../../shared/work/replies/stored-frames-store.ts';
import { ObjectStore } from '../../../../shared/platform/storage/object-store.ts';
import {
  createRequest,
  storeStream,
  makeFrame,
  readStoredBytes,
  useObjects,
} from '../../../support/stored-responses.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

const makeDeltas = (count: number): Buffer[] => Array.from({ length: count }, () => randomBytes(40_000));

test('moved frames are in the object store byte for byte, and no longer count towards the limit of the account', async (t) => {
  const { objects } = await useObjects(t);
  const frames = new StoredFramesStore(redis(), redis());
  const responses = new ResponseStore(frames, objects);
  const request = createRequest();
  const bytes = await storeStream(frames, request, makeDeltas(20));
  const before = await frames.readPart('frames', request, 0, bytes);
  t.true(await responses.move('frames', request, bytes));
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes; at += 100_000)
    pieces.push(await responses.readMovedFrames(request, bytes, at, 100_000));
  t.true(Buffer.concat(pieces).equals(before));
  const { sum } = await readStoredBytes(redis(), request.accountId);
  t.is(sum, await redis().strlen(redisKeys.storedFrames(request.accountId, request.requestId)));
  t.true(sum! < 50);
});

test('bytes in Redis count separately for jobs and for Idempotency-Keys, until they are moved to the object store', async (t) => {
  const { objects } = await useObjects(t);
  const responses = new ResponseStore(new StoredFramesStore(redis(), redis()), objects);
  const request = { ...createRequest(), jobAttempt: 1 };
  const read = () => readStoredBytes(redis(), request.accountId, 'jobStoredBytes');
  const kept = await responses.keep(request, randomBytes(20_000));
  if (!('size' in kept)) throw new Error('it is not in Redis');
  t.is((await read())['sum'], kept.size.bytes);
  t.true(await responses.move('frames', request, kept.size.bytes));
  t.true((await read())['sum']! < 50);
  t.deepEqual(await readStoredBytes(redis(), request.accountId), {});
});

test('moving frames twice neither fails nor damages the stored copy', async (t) => {
  const { objects } = await useObjects(t);
  const frames = new StoredFramesStore(redis(), redis());
  const responses = new ResponseStore(frames, objects);
  const request = createRequest();
  const bytes = await storeStream(frames, request, makeDeltas(20));
  const before = await frames.readPart('frames', request, 0, bytes);
  const moved = await Promise.all([
    responses.move('frames', request, bytes),
    responses.move('frames', request, bytes),
  ]);
  t.is(moved.filter(Boolean).length, 1);
  t.false(await responses.move('frames', request, bytes));
  t.true((await responses.readMovedFrames(request, bytes, 0, bytes)).equals(before));
});

test('a move that started before the last frame arrived does nothing, before or after the complete move', async (t) => {
  const { objects } = await useObjects(t);
  const frames = new StoredFramesStore(redis(), redis());
  const responses = new ResponseStore(frames, objects);
  const request = createRequest();
  const shorter = await storeStream(frames, request, makeDeltas(5));
  const late = makeFrame(request, 'result', 7, 'late');
  const { bytes: longer } = (await frames.append(request, 'result', late))!;
  const before = await frames.readPart('frames', request, 0, longer);
  t.false(await responses.move('frames', request, shorter), 'the copy would lack the last frame');
  t.true(await responses.move('frames', request, longer));
  t.false(await responses.move('frames', request, shorter));
  t.true((await responses.readMovedFrames(request, longer, 0, longer)).equals(before));
});

test('while the object store is unavailable everything stays in Redis, and can be moved when it is back', async (t) => {
  const { objects, stop, start } = await useObjects(t);
  const frames = new StoredFramesStore(redis(), redis());
  const responses = new ResponseStore(frames, objects);
  const [stream, whole] = [createRequest(), createRequest()];
  const bytes = await storeStream(frames, stream, makeDeltas(5));
  const before = await frames.readPart('frames', stream, 0, bytes);
  await stop();
  await t.throwsAsync(responses.move('frames', stream, bytes));
  t.true((await frames.readPart('frames', stream, 0, bytes)).equals(before));
  const response = randomBytes(100_000);
  const stored = await responses.put(whole, response);
  t.deepEqual(stored, { in: 'redis', bytes: response.length });
  t.true((await responses.read(whole, stored))!.equals(response));
  t.is((await readStoredBytes(redis(), whole.accountId))['sum'], response.length);
  await start();
  t.true(await responses.move('frames', stream, bytes));
  t.true(await responses.move('answer', whole, response.length));
  t.true((await responses.readMovedFrames(stream, bytes, 0, bytes)).equals(before));
  t.true((await responses.read(whole, stored))!.equals(response), 'its reader finds it in the object store');
  t.deepEqual(await readStoredBytes(redis(), whole.accountId), {});
});

test('if the object store accepts connections but does not respond, reading fails with a 503 in time', async (t) => {
  const silent = createServer((socket) => socket.unref()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  const credentials = { accessKeyId: 'k', secretAccessKey: 's' };
  const endpoint = `http://127.0.0.1:${port}`;
  const objects = new ObjectStore({
    endpoint,
    region: 'r',
    bucket: 'b',
    publicUrl: null,
    manageBucket: 'auto',
    ...credentials,
  });
  t.teardown(() => objects.close());
  const responses = new ResponseStore(new StoredFramesStore(redis(), redis()), objects, 50);
  const error = await t.throwsAsync(responses.readMovedFrames(createRequest(), 100, 0, 100));
  t.is((error as AppError).code, 'service_unavailable');
});

test('reading moved frames that are missing or whose store is unavailable fails with a 503, not with an internal error', async (t) => {
  const { objects, stop } = await useObjects(t);
  const responses = new ResponseStore(new StoredFramesStore(redis(), redis()), objects);
  const read = () => responses.readMovedFrames(createRequest(), 100, 0, 100);
  await t.throwsAsync(read(), { message: /no longer available/ });
  await stop();
  await t.throwsAsync(read(), { message: /is temporarily unavailable/ });
});
