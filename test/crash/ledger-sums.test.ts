import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { runAdmission } from '../../shared/money/admit-script.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { runSettlement } from '../../shared/work/settlement/settle-script.ts';
import { admission, usageEvent } from '../support/billing.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';

/** More than fit in several batches of the ledger. */
const requests = 2_400;
const deaths = 3;
const day = '2026-11-21';
const at = Date.UTC(2026, 10, 21, 12);

test('sums by account, model and day are exact after workers were killed while they moved the ledger', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { redis, mongo } = stack;
  const ledger = new LedgerStore(mongo.db);
  const account = await stack.createAccount();
  const keyHash = await redis.hget(redisKeys.account(account.id), 'key');
  for (let i = 0; i < requests; i += 100)
    await Promise.all(
      Array.from({ length: 100 }, async (_, j) => {
        const request = admission(account.id, { keyHash: keyHash!, fixedNano: 5n });
        await runAdmission(redis, request);
        const model = (i + j) % 4 === 0 ? 'a' : 'b';
        const event = usageEvent(account.id, request.requestId, { at, model, vendorCostNano: '2' });
        await runSettlement(redis, event, 5n);
      }),
    );
  const stream = redisKeys.ledgerStream(shardOf(account.id));
  for (let death = 1; death <= deaths; death++) {
    const before = await ledger.logs.countDocuments({});
    const worker = await startRole(t, 'worker', stack.env);
    await waitFor('rows of another batch', async () => {
      const rows = await ledger.logs.countDocuments({});
      return rows > before || rows === requests;
    });
    // Somewhere in a batch: between its rows and its sums, or between two of these.
    await delay(death * 4);
    await worker.kill();
  }
  await startRole(t, 'worker', stack.env);
  await waitFor('the stream to be moved', async () => (await redis.xlen(stream)) === 0, 60_000);
  const expect = (share: number) => ({
    requests: share,
    rows: share,
    costNano: BigInt(5 * share),
    vendorCostNano: BigInt(2 * share),
    costedRequests: share,
  });
  const { ofAccounts, ofModels } = ledger.spend;
  t.is(await ledger.logs.countDocuments({}), requests);
  for (const [model, share] of [
    ['a', requests / 4],
    ['b', (3 * requests) / 4],
  ] as const) {
    t.like(await ofAccounts.findOne({ _id: `${account.id}:${day}:${model}` }), expect(share));
    t.like(await ofModels.findOne({ _id: `${shardOf(account.id)}:${day}:${model}` }), expect(share));
  }
  t.like(await ofModels.findOne({ _id: `${shardOf(account.id)}:${day}:` }), expect(requests));
  t.like(await ledger.stats.findOne({ _id: `${account.id}:${day}` }), {
    requests,
    costNano: BigInt(5 * requests),
  });
});
