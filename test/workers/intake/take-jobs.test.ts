import test, { type ExecutionContext } from 'ava';
import { runAdmission } from '../../../shared/billing/admit-script.ts';
import { cancelJob } from '../../../shared/jobs/end-job-scripts.ts';
import type { JobRecord } from '../../../shared/jobs/job-record.ts';
import { hasEnded } from '../../../shared/jobs/job-record.ts';
import { JobStore } from '../../../shared/jobs/job-store.ts';
import { JobTurns } from '../../../shared/jobs/job-turns-store.ts';
import { placeJob, type NewJob } from '../../../shared/jobs/place-job-script.ts';
import type { Job } from '../../../shared/queue/job-kinds.ts';
import { redisKeys } from '../../../shared/redis/redis-keys.ts';
import { admission, readBalance } from '../../support/billing.ts';
import { useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

const fixedNano = 50_000_000n;

async function place(stack: TestStack, accountId: string, more: Partial<NewJob> = {}): Promise<string> {
  const { redis } = stack;
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
  const { weight } = await placeJob(redis, redis, {
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

async function whenEnded({ redis }: TestStack, accountId: string, id: string): Promise<JobRecord> {
  return await waitFor('the job to end', async () => {
    const found = await new JobStore(redis).find(accountId, id);
    return found !== null && hasEnded(found.job) ? found.job : null;
  });
}

async function expectNothingHeld(
  t: ExecutionContext,
  { redis }: TestStack,
  accountId: string,
): Promise<void> {
  const { reserved, freeHeld } = await readBalance(redis, accountId);
  t.is(reserved, 0n);
  t.is(freeHeld, 0);
  const held = await redis.hgetall(redisKeys.jobsHeld(accountId));
  t.deepEqual(
    Object.entries(held).filter(([, value]) => value !== '0'),
    [],
  );
}

test('a job is run, charged once and kept with its answer, and holds nothing any more', async (t) => {
  const stack = await useStack(t);
  const { id: accountId } = await stack.createAccount();
  const before = await readBalance(stack.redis, accountId);
  const id = await place(stack, accountId);
  const job = await whenEnded(stack, accountId, id);
  t.is(job.status, 'succeeded');
  t.deepEqual(
    job.transitions.map(({ status }) => status),
    ['queued', 'active', 'succeeded'],
  );
  const after = await readBalance(stack.redis, accountId);
  t.true(job.receipt!.costNano > 0n);
  t.is(before.balance - after.balance, job.receipt!.costNano);
  await expectNothingHeld(t, stack, accountId);
  t.true((await stack.redis.strlen(redisKeys.keptFrames(accountId, id))) > 0);
  t.is(await stack.redis.exists(redisKeys.jobBody(accountId, id)), 0);
});

test('a cancelled job that waits is refunded and never runs', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { id: accountId } = await stack.createAccount();
  const id = await place(stack, accountId);
  t.is((await readBalance(stack.redis, accountId)).reserved, fixedNano);
  t.is((await cancelJob(stack.redis, accountId, id)).outcome, 'cancelled');
  await expectNothingHeld(t, stack, accountId);
  await stack.startWorker();
  const second = await place(stack, accountId);
  await whenEnded(stack, accountId, second);
  const { job } = (await new JobStore(stack.redis).find(accountId, id))!;
  t.is(job.status, 'cancelled');
  t.is(job.attempts, 0);
});
