import test from 'ava';
import { cancelJob } from '../../../../shared/work/jobs/end-job-scripts.ts';
import { JobStore } from '../../../../shared/work/jobs/job-store.ts';
import { JobTurns } from '../../../../shared/work/jobs/job-turns-store.ts';
import { placeJob } from '../../../../shared/work/jobs/place-job-script.ts';
import { handBackJob, startJob, takeJob } from '../../../../shared/work/jobs/run-job-scripts.ts';
import { noEstimate, presentJob } from '../../../../shared/work/jobs/present-job.ts';
import { redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { Faults } from '../../../../workers/reporting/faults.ts';
import { WebhookQueue } from '../../../../workers/deliveries/webhooks/webhook-queue.ts';
import { ShardLeases } from '../../../../workers/ledger/shard-leases.ts';
import { BatchKeeper } from '../../../../workers/batches/batch-keeper.ts';
import { JobKeeper, type JobKeeperOptions } from '../../../../workers/maintenance/job-keeper.ts';
import { JobHooks } from '../../../../workers/deliveries/webhooks/job-hooks.ts';
import { openLedgerServices, type LedgerServices } from '../../../support/ledger-services.ts';
import { admitChat } from '../../../support/place-jobs.ts';
import { createTestWebhookClient, startTestIntake, useReceiver } from '../../../support/webhooks.ts';
import { waitFor } from '../../../support/wait-for.ts';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

const log = createLogger('test', 'silent');

async function endWithHook(url: string): Promise<{ accountId: string; id: string }> {
  const { redis } = services;
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  const job = await admitChat(services, accountId, 'demo-echo');
  await placeJob(redis, redis, { ...job, webhookUrl: url });
  await cancelJob(redis, accountId, job.id);
  return { accountId, id: job.id };
}

function createKeeper(worker: string, queueHook: JobKeeperOptions['queueHook']): JobKeeper {
  const { redis } = services;
  const leases = new ShardLeases(redis, worker, redisKeys.jobsLease);
  return new JobKeeper({
    batches: new BatchKeeper({
      redis: redis,
      turns: new JobTurns(redis),
      queueHook: () => Promise.resolve(),
      log,
    }),
    redis,
    turns: new JobTurns(redis),
    leases,
    queueHook,
    knowsModel: () => true,
    faults: new Faults(log),
    log,
  });
}

test.serial('when a job ends, its webhook is called, and the job shows the delivery', async (t) => {
  const { redis } = services;
  const receiver = await useReceiver(t, (_webhook, response) => response.writeHead(204).end());
  const queue = new WebhookQueue(redis);
  t.teardown(() => queue.close());
  const hooks = new JobHooks(redis, queue);
  const intake = await startTestIntake(services.redisUrl, redis, {
    client: createTestWebhookClient(receiver.port),
    reporter: hooks,
    loadPayload: (delivery) => hooks.loadPayload(delivery),
  });
  t.teardown(() => intake.stop());
  const { accountId, id } = await endWithHook(receiver.url);
  await createKeeper('one', (hook) => hooks.queue(hook)).maintainShards();
  const job = await waitFor('the report', async () => {
    const found = await new JobStore(redis).find(accountId, id);
    return typeof found?.job.webhook?.report === 'string' ? found.job : null;
  });
  t.like(presentJob(job, noEstimate, '').webhook, { url: receiver.url, status: 'delivered', attempts: 1 });
  const late = {
    status: 'pending',
    attempts: 1,
    lastStatus: 500,
    lastError: 'no',
    nextAttemptAt: new Date(),
  } as const;
  await hooks.report({ v: 1, accountId, jobId: id, url: receiver.url, event: 'job.cancelled' }, late);
  const reported = (await new JobStore(redis).find(accountId, id))!.job;
  t.like(
    presentJob(reported, noEstimate, '').webhook,
    { status: 'delivered' },
    'a late report changes nothing',
  );
  const [received] = receiver.received;
  t.like(JSON.parse(received!.body), { type: 'job.cancelled', data: { id, status: 'cancelled' } });
  t.is(await redis.zcard(redisKeys.jobHooks(shardOf(accountId))), 0);
});

test.serial(
  'if a webhook cannot be queued, other maintenance of jobs continues, and the webhook is queued later',
  async (t) => {
    const { redis } = services;
    const { accountId, id } = await endWithHook('https://example.com/hook');
    const shard = shardOf(accountId);
    await redis.zadd(redisKeys.jobsEnded(shard), 1, `${accountId} gone`);
    await redis.del(redisKeys.jobsLease(shard));
    const queued: string[] = [];
    let isDown = true;
    const keeper = createKeeper('two', async ({ jobId }) => {
      if (isDown) throw new Error('the queue is down');
      queued.push(jobId);
    });
    await keeper.maintainShards();
    t.is(await redis.zscore(redisKeys.jobsEnded(shard), `${accountId} gone`), null);
    isDown = false;
    await keeper.maintainShards();
    t.deepEqual(queued, [id]);
  },
);

test.serial(
  'a webhook of the start is queued once per job, even if the job starts again, and the job does not show it',
  async (t) => {
    const { redis } = services;
    const receiver = await useReceiver(t, (_webhook, response) => response.writeHead(204).end());
    const queue = new WebhookQueue(redis);
    t.teardown(() => queue.close());
    const hooks = new JobHooks(redis, queue);
    const intake = await startTestIntake(services.redisUrl, redis, {
      client: createTestWebhookClient(receiver.port),
      reporter: hooks,
      loadPayload: (delivery) => hooks.loadPayload(delivery),
    });
    t.teardown(() => intake.stop());
    const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
    const job = await admitChat(services, accountId, 'demo-echo');
    const publicUrl = 'https://gateway.example';
    const hook = { webhookUrl: receiver.url, webhookEvents: ['started', 'ended'], publicUrl } as const;
    await placeJob(redis, redis, { ...job, ...hook });
    const queued: string[] = [];
    const keeper = createKeeper('three', async (due) => {
      queued.push(due.event);
      await hooks.queue(due);
    });
    await redis.del(redisKeys.jobsLease(shardOf(accountId)));
    for (let attempt = 1; attempt <= 2; attempt++) {
      await keeper.maintainShards();
      t.is(queued.length, attempt - 1, 'a job that has not started has no webhook');
      const taken = await takeJob(redis, { queue: 'chat', model: 'demo-echo' }, accountId, 'a-worker');
      t.is(await startJob(redis, taken.job!), 'ok');
      await keeper.maintainShards();
      await handBackJob(redis, taken.job!);
    }
    t.deepEqual(queued, ['job.started']);
    const started = await waitFor('the webhook', () => receiver.received[0]);
    const body = JSON.parse(started.body) as {
      readonly timestamp: string;
      readonly data: Readonly<Record<string, object | string>>;
    };
    t.like(body, { type: 'job.started', data: { id: job.id, webhook: { status: 'pending', attempts: 0 } } });
    t.is(body.data['started_at'], body.timestamp);
    t.like(body.data['urls'], { get: `${publicUrl}/v1/jobs/${job.id}` });
    t.is(started.headers['webhook-id'], `msg_${job.id}_started`);
    await cancelJob(redis, accountId, job.id);
    await keeper.maintainShards();
    t.deepEqual(queued, ['job.started', 'job.cancelled']);
    await waitFor('the webhook', () => receiver.received.length === 2);
    t.like(JSON.parse(receiver.received[1]!.body), { type: 'job.cancelled' });
  },
);

test.serial('a job whose webhook is only for its start has none for its end, and shows none', async (t) => {
  const { redis } = services;
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  const job = await admitChat(services, accountId, 'demo-echo');
  await placeJob(redis, redis, {
    ...job,
    webhookUrl: 'https://example.com/hook',
    webhookEvents: ['started'],
  });
  await cancelJob(redis, accountId, job.id);
  t.is(await redis.zscore(redisKeys.jobHooks(shardOf(accountId)), `${accountId} ${job.id}`), null);
  const found = await new JobStore(redis).find(accountId, job.id);
  t.is(presentJob(found!.job, noEstimate, '').webhook, null);
});
