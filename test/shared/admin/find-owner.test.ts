import { randomUUID } from 'node:crypto';
import test from 'ava';
import { findBatchOwner } from '../../../shared/admin/batches.ts';
import { findJobOwner } from '../../../shared/admin/jobs.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { deleteEndedJobs } from '../../../shared/work/jobs/end-job-scripts.ts';
import { toBatchId } from '../../../shared/work/batches/batches.ts';
import { deleteEndedBatches } from '../../../workers/batches/keep-batch-scripts.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { placeBatch } from '../../support/place-batches.ts';
import { enqueueChat } from '../../support/place-jobs.ts';

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

const balanceNano = 1_000_000_000n;

test('the account of a job is found by the id of the job, without asking accounts, until the job is deleted', async (t) => {
  const { redis } = services;
  const { id: accountId } = await services.createAccount({ balanceNano });
  const id = await enqueueChat(services, accountId, 'model');
  t.deepEqual(await findJobOwner({ redis }, id), { accountId, id });
  t.is(await findJobOwner({ redis }, randomUUID()), null);
  const shard = shardOf(accountId);
  await redis.zadd(redisKeys.jobsEnded(shard), 1, `${accountId} ${id}`);
  await deleteEndedJobs(redis, shard);
  t.is(await findJobOwner({ redis }, id), null);
  t.is(await redis.hexists(redisKeys.jobOwners(shard), id), 0);
});

test('the account of a batch is found by the id of the batch, until the batch is deleted', async (t) => {
  const { redis } = services;
  const { id: accountId } = await services.createAccount({ balanceNano });
  const id = toBatchId(randomUUID());
  const { placed } = await placeBatch(redis, accountId, { id });
  t.is(placed.outcome, 'ok');
  t.deepEqual(await findBatchOwner({ redis }, id), { accountId, id });
  t.is(await findBatchOwner({ redis }, toBatchId(randomUUID())), null);
  const shard = shardOf(accountId);
  await redis.zadd(redisKeys.batchesEnded(shard), 1, `${accountId} ${id}`);
  await deleteEndedBatches(redis, shard);
  t.is(await redis.hexists(redisKeys.jobOwners(shard), id), 0);
});
