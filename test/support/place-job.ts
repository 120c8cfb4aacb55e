import { runAdmission } from '../../shared/billing/admit-script.ts';
import { JobTurns } from '../../shared/jobs/job-turns-store.ts';
import { placeJob, type NewJob } from '../../shared/jobs/place-job-script.ts';
import type { Job } from '../../shared/queue/job-kinds.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { admission } from './billing.ts';

/** What each of them reserves. */
export const fixedNano = 50_000_000n;

/** An admitted request that has become a durable job, without an api. */
export async function placeChatJob(
  redis: RedisClient,
  accountId: string,
  more: Partial<NewJob> = {},
): Promise<string> {
  const keyHash = (await redis.hget(redisKeys.account(accountId), 'key'))!;
  const asked = admission(accountId, { keyHash, fixedNano });
  const admitted = await runAdmission(redis, asked);
  if (admitted.outcome !== 'ok') throw new Error(`not admitted: ${admitted.outcome}`);
  const nowMs = Date.now();
  const job: Job = {
    v: 1,
    kind: 'chat',
    attempt: 1,
    replyChannel: '',
    reservedTokens: 100,
    body: { model: 'demo-echo', messages: [{ role: 'user', content: 'hello' }], max_tokens: 100 },
    request: {
      requestId: asked.requestId,
      accountId,
      model: 'demo-echo',
      pricing: {
        date_of_use: '2026-01-01',
        type: 'tokens',
        prompt: 50,
        completion: 150,
        free_requests: true,
      },
      priceVersion: 'v',
      admittedAtMs: nowMs,
      deadlineAtMs: nowMs + 60_000,
      userIp: '127.0.0.1',
      promptTokens: 3,
      user: null,
      claimHash: null,
    },
  } as never;
  const weight = await placeJob(redis, redis, {
    id: asked.requestId,
    accountId,
    queue: 'chat',
    model: 'demo-echo',
    operation: 'chat.completions',
    createdAtMs: nowMs,
    deadlineAtMs: nowMs + 60_000,
    format: null,
    webhookUrl: null,
    body: Buffer.from(JSON.stringify({ v: 1, job })),
    ...more,
  });
  await new JobTurns(redis).add({ queue: 'chat', model: 'demo-echo' }, accountId, weight);
  return asked.requestId;
}
