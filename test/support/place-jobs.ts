import { runAdmission } from '../../shared/money/admit-script.ts';
import { JobTurns } from '../../shared/work/jobs/job-turns-store.ts';
import { placeJob, type NewJob } from '../../shared/work/jobs/place-job-script.ts';
import type { ChatJob } from '../../shared/work/queue/job-kinds.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { noChannel } from '../../shared/work/queue/job-kinds.ts';
import { admission } from './billing.ts';
import type { TestStack } from './stack.ts';

/** The amount that `admitChat` reserves. */
export const chatReservedNano = 50_000_000n;

const lifetimeMs = 10 * 60_000;

/** Creates durable chats as the api does, without HTTP: for tests that need thousands, or only the first step. */

/** Admits a chat, without enqueuing a job for it. */
export async function admitChat(
  { redis }: Pick<TestStack, 'redis'>,
  accountId: string,
  model: string,
  content = 'hello',
): Promise<NewJob> {
  const keyHash = (await redis.hget(redisKeys.account(accountId), 'key'))!;
  const request = admission(accountId, { keyHash, fixedNano: chatReservedNano });
  const { outcome } = await runAdmission(redis, request);
  if (outcome !== 'ok') throw new Error(`not admitted: ${outcome}`);
  const id = request.requestId;
  const admittedAtMs = Date.now();
  const job: ChatJob = {
    v: 1,
    kind: 'chat',
    attempt: 1,
    replyChannel: noChannel,
    mostPromptTokens: 10,
    reservedTokens: 100,
    body: { model, messages: [{ role: 'user', content }], max_tokens: 100 },
    request: {
      requestId: id,
      accountId,
      model,
      pricing: {
        date_of_use: '2026-01-01',
        type: 'tokens',
        prompt: 50,
        completion: 150,
        free_requests: false,
      },
      priceVersion: 'test',
      admittedAtMs,
      deadlineAtMs: admittedAtMs + lifetimeMs,
      userIp: '127.0.0.1',
      promptTokens: 3,
      user: null,
      claimHash: null,
    },
  };
  return {
    id,
    accountId,
    queue: 'chat',
    model,
    operation: 'chat.completions',
    timeoutMs: lifetimeMs,
    format: null,
    webhookUrl: null,
    body: Buffer.from(JSON.stringify({ v: 1, job })),
  };
}

/** @returns the job's id */
export async function enqueueChat(
  stack: Pick<TestStack, 'redis'>,
  accountId: string,
  model: string,
  content = 'hello',
): Promise<string> {
  const { redis } = stack;
  const job = await admitChat(stack, accountId, model, content);
  const { weight } = await placeJob(redis, redis, job);
  await new JobTurns(redis).add({ queue: 'chat', model }, accountId, weight);
  return job.id;
}
