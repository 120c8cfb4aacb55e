import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { startEmbeddedS3 } from '../../scripts/embedded/s3/server.ts';
import type { HeartbeatRequest } from '../../shared/money/reservation-store.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { encodeFrame, type FrameKind } from '../../shared/work/replies/frame.ts';
import type { StoredFramesStore } from '../../shared/work/replies/stored-frames-store.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';

/** Stored responses for Idempotency-Keys, written as a worker writes them. */

export const createRequest = (accountId: string = randomUUID()): HeartbeatRequest => ({
  requestId: randomUUID(),
  accountId,
});

export function makeFrame(
  { requestId }: HeartbeatRequest,
  kind: FrameKind,
  sequence: number,
  payload: Buffer | string = '',
  attempt = 1,
): Buffer {
  return encodeFrame({ requestId, attempt, sequence, kind, tokens: 0, payload: Buffer.from(payload) });
}

/** A complete stream: `accepted`, a delta per payload, and a result. @returns the number of stored bytes */
export async function storeStream(
  frames: StoredFramesStore,
  request: HeartbeatRequest,
  deltas: readonly Buffer[],
  result = 'data: [DONE]\n\n',
): Promise<number> {
  await frames.append(request, 'accepted', makeFrame(request, 'accepted', 0, 'worker'));
  for (const [i, delta] of deltas.entries())
    await frames.append(request, 'delta', makeFrame(request, 'delta', i + 1, delta));
  const last = makeFrame(request, 'result', deltas.length + 1, result);
  return (await frames.append(request, 'result', last))!.bytes;
}

/** The counter of stored bytes to which a response is added. */
type StoredBytesCounter = 'storedBytes' | 'jobStoredBytes';

/** The stored bytes of an account as counted in Redis: per ten-minute expiry slot, and in total. */
export async function readStoredBytes(
  redis: RedisClient,
  accountId: string,
  counter: StoredBytesCounter = 'storedBytes',
): Promise<Record<string, number>> {
  const fields = await redis.hgetall(redisKeys[counter](accountId));
  return Object.fromEntries(
    Object.entries(fields)
      .map(([field, bytes]) => [field, Number(bytes)] as const)
      .filter(([, bytes]) => bytes !== 0),
  );
}

/** Simulates an account with this many stored bytes, expiring in `inMinutes`. */
export async function setStoredBytes(
  redis: RedisClient,
  accountId: string,
  bytes: number,
  inMinutes = 600,
  counter: StoredBytesCounter = 'storedBytes',
): Promise<void> {
  const at = Math.floor(Date.now() / 1_000) + inMinutes * 60;
  await redis.hset(redisKeys[counter](accountId), { sum: bytes, [Math.floor(at / 600) * 600]: bytes });
}

export interface TestObjects {
  readonly objects: ObjectStore;
  /** The settings for another client of the same server. */
  readonly config: Config['s3'];
  /** Stops the server. It still has its data after `start`. */
  readonly stop: () => Promise<void>;
  readonly start: () => Promise<void>;
}

/** A dedicated S3 server with a bucket. */
export async function useObjects(t: ExecutionContext): Promise<TestObjects> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const credentials = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };
  let server = await startEmbeddedS3({ dir, ...credentials });
  let isRunning = true;
  const port = Number(new URL(server.endpoint).port);
  const config = {
    endpoint: server.endpoint,
    region: 'us-east-1',
    bucket: 'kept',
    publicUrl: null,
    manageBucket: 'auto',
    ...credentials,
  } as const;
  const objects = new ObjectStore(config);
  await objects.prepareBucket();
  const stop = async (): Promise<void> => {
    if (isRunning) await server.close();
    isRunning = false;
  };
  t.teardown(async () => {
    objects.close();
    await stop();
    await rm(dir, { recursive: true, force: true });
  });
  return {
    objects,
    config,
    stop,
    async start() {
      server = await startEmbeddedS3({ dir, port, ...credentials });
      isRunning = true;
    },
  };
}
