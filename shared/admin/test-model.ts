import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { CatalogModel } from '../catalog/catalog-schema.ts';
import { AppError } from '../contract/errors.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { queueOfModel } from '../work/queue/job-kinds.ts';
import { WorkerRegistryStore } from '../work/queue/worker-registry-store.ts';
import { sendControl, type ModelTestResult } from '../work/replies/worker-control.ts';
import type { AuditTrail } from './audit-trail.ts';

/** Longer than the worker lets the call take. */
const replyTimeoutMs = 70_000;
const pollMs = 100;

/** A test as shown to operators. */
const describeTest = (model: string, result: ModelTestResult) => ({
  model,
  ok: result.ok,
  upstream: result.upstream,
  upstream_model: result.upstreamModel,
  duration_ms: result.durationMs,
  prompt_tokens: result.promptTokens,
  completion_tokens: result.completionTokens,
  status: result.status,
  reason: result.reason,
});
export type DescribedTest = ReturnType<typeof describeTest>;

/**
 * Has a live worker make one short call to a model, through the same routes, keys and limits as requests. No account is
 * charged.
 * @throws AppError `service_unavailable` if no worker does it in time
 */
export async function testModel(
  { redis }: { readonly redis: RedisClient },
  trail: AuditTrail,
  { id, type }: CatalogModel,
  signal?: AbortSignal,
): Promise<DescribedTest> {
  return await trail.run(
    { action: 'model.test', id },
    async () => {
      const [result] = await askWorker(redis, { id, type, upstream: null }, signal);
      return describeTest(id, result!);
    },
    (result) => result,
  );
}

/**
 * Has a live worker make a short call to a model with each key of an upstream.
 * @returns one result per key; empty if the worker has no route of the model to the upstream
 * @throws AppError `service_unavailable` if no worker does it in time
 */
export const testKeys = async (
  redis: RedisClient,
  trail: AuditTrail,
  { id, type }: CatalogModel,
  upstream: string,
): Promise<ModelTestResult[]> =>
  await trail.run(
    { action: 'model.test', id },
    () => askWorker(redis, { id, type, upstream }),
    (results) => ({ upstream, keys: results.map(({ key, ok, status }) => ({ key, ok, status })) }),
  );

async function askWorker(
  redis: RedisClient,
  { id, type, upstream }: Pick<CatalogModel, 'id' | 'type'> & { readonly upstream: string | null },
  signal?: AbortSignal,
): Promise<ModelTestResult[]> {
  const reply = redisKeys.drained(randomUUID());
  const workers = await new WorkerRegistryStore(redis).findAlive(queueOfModel(type));
  for (const worker of workers)
    if (await sendControl(redis, worker, { action: 'test-model', model: id, upstream, reply }))
      return await awaitReply(redis, reply, signal);
  throw unavailable(`No live worker serves the queue of ${id}. Start one, and try again.`);
}

async function awaitReply(
  redis: RedisClient,
  reply: string,
  signal: AbortSignal | undefined,
): Promise<ModelTestResult[]> {
  for (const untilMs = performance.now() + replyTimeoutMs; performance.now() < untilMs;) {
    const text = await callRedis(() => redis.lpop(reply));
    if (text !== null) return JSON.parse(text) as ModelTestResult[];
    signal?.throwIfAborted();
    await delay(pollMs);
  }
  throw unavailable('The worker did not report the result of the test in time.');
}

const unavailable = (message: string): AppError =>
  new AppError('service_unavailable', { message, expose: true });
