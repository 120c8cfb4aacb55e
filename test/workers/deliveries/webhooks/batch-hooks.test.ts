import test from 'ava';
import OpenAI from 'openai';
import { redisKeys, shardCount, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../../shared/platform/runtime/logger.ts';
import { anyModel } from '../../../../shared/work/batches/batch-constants.ts';
import { BatchStore, type NewBatch } from '../../../../shared/work/batches/batch-store.ts';
import { createFileId } from '../../../../shared/work/files/file-id.ts';
import { JobTurns } from '../../../../shared/work/jobs/job-turns-store.ts';
import { BatchKeeper } from '../../../../workers/batches/batch-keeper.ts';
import { settleLines, takeSlice } from '../../../../workers/batches/slice-scripts.ts';
import { BatchHooks } from '../../../../workers/deliveries/webhooks/batch-hooks.ts';
import { WebhookQueue } from '../../../../workers/deliveries/webhooks/webhook-queue.ts';
import { openLedgerServices, type LedgerServices } from '../../../support/ledger-services.ts';
import { batchLine, placeBatch } from '../../../support/place-batches.ts';
import { waitFor } from '../../../support/wait-for.ts';
import {
  createTestWebhookClient,
  startTestIntake,
  testSecret,
  useReceiver,
} from '../../../support/webhooks.ts';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

/** Ends all lines of a batch without results, whether they may be run or not. */
async function endLines(accountId: string): Promise<void> {
  const { redis } = services;
  for (const model of [batchLine.model, anyModel]) {
    for (;;) {
      const { slice } = await takeSlice(redis, { ...batchLine, model }, accountId, 'a-worker');
      if (slice === null) break;
      const nothing = { fileId: createFileId(Date.now(), 3_600), object: null };
      await settleLines(redis, slice, {
        step: 1,
        done: '',
        isLast: true,
        releaseNano: 0n,
        reasoningTokens: 0,
        notRun: 0,
        output: nothing,
        errors: nothing,
        models: [],
      });
    }
  }
}

test('whatever ends a batch, its webhook is called once, with the event and the signature that OpenAI’s client checks', async (t) => {
  const { redis } = services;
  const receiver = await useReceiver(t, (_webhook, response) => response.writeHead(204).end());
  const queue = new WebhookQueue(redis);
  t.teardown(() => queue.close());
  const hooks = new BatchHooks(redis, queue);
  const intake = await startTestIntake(services.redisUrl, redis, {
    client: createTestWebhookClient(receiver.port),
    reporter: hooks,
    loadPayload: (delivery) => hooks.loadPayload(delivery),
  });
  t.teardown(() => intake.stop());
  const log = createLogger('test', 'silent');
  const keeper = new BatchKeeper({
    redis,
    turns: new JobTurns(redis),
    queueHook: (hook) => hooks.queue(hook),
    log,
  });
  const batches = new BatchStore(redis);
  const place = async (changes: Partial<NewBatch>) => {
    const { id: accountId } = await services.createAccount({ balanceNano: 1_000_000n });
    const { batch } = await placeBatch(redis, accountId, { webhookUrl: receiver.url, ...changes });
    return batch;
  };
  const completed = await place({});
  const silent = await place({ webhookUrl: null });
  const failed = await place({
    faults: [{ code: 'empty_file', line: null, message: 'The file has no lines.', param: null }],
  });
  const expired = await place({ windowMs: 0 });
  const cancelled = await place({});
  await batches.cancel(cancelled.accountId, cancelled.id);
  for (let shard = 0; shard < shardCount; shard++) await keeper.wake(shard);
  for (const { accountId } of [completed, silent, expired, cancelled]) await endLines(accountId);
  for (let pass = 0; pass < 2; pass++)
    for (let shard = 0; shard < shardCount; shard++) await keeper.queueHooks(shard);

  const client = new OpenAI({ apiKey: 'none' });
  for (const [type, { accountId, id }] of [
    ['batch.completed', completed],
    ['batch.failed', failed],
    ['batch.expired', expired],
    ['batch.cancelled', cancelled],
  ] as const) {
    await waitFor(`the report of ${type}`, async () => {
      const report = await redis.hget(redisKeys.batch(accountId, id), 'wh');
      return report?.includes('"delivered"');
    });
    const calls = receiver.received.filter(({ body }) => body.includes(id));
    t.is(calls.length, 1, type);
    const [{ body, headers }] = calls as [(typeof calls)[0]];
    const event = await client.webhooks.unwrap(body, headers, testSecret);
    const { status, reachedAtMs } = (await batches.find(accountId, id))!;
    t.is(`batch.${status}`, type);
    t.deepEqual(event as object, {
      id: `evt_${id}_${status}`,
      object: 'event',
      created_at: Math.floor(reachedAtMs[status]! / 1_000),
      type,
      data: { id },
    });
    t.is(headers['webhook-id'], `msg_${id}_${status}`);
    t.is(await redis.zcard(redisKeys.batchHooks(shardOf(accountId))), 0);
  }
  t.is((await batches.find(silent.accountId, silent.id))!.status, 'completed');
  t.is(receiver.received.length, 4);
});
