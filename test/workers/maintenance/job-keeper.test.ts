import test from 'ava';
import { JobTurns } from '../../../shared/work/jobs/job-turns-store.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { Faults } from '../../../workers/reporting/faults.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { BatchKeeper } from '../../../workers/batches/batch-keeper.ts';
import { JobKeeper } from '../../../workers/maintenance/job-keeper.ts';
import { openLedgerServices } from '../../support/ledger-services.ts';
import { enqueueChat } from '../../support/place-jobs.ts';

test('jobs that wait for a model that the worker does not know are reported in its log', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { redis } = services;
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  await enqueueChat(services, accountId, 'demo-echo');
  await enqueueChat(services, accountId, 'from-elsewhere');
  await enqueueChat(services, accountId, 'from-elsewhere');
  const log = createLogger('test', 'silent');
  const warnings: [fields: object, text: string][] = [];
  const keeper = new JobKeeper({
    redis,
    turns: new JobTurns(redis),
    batches: new BatchKeeper({
      redis: redis,
      turns: new JobTurns(redis),
      queueHook: () => Promise.resolve(),
      log,
    }),
    leases: new ShardLeases(redis, 'a-worker', redisKeys.jobsLease),
    queueHook: () => Promise.resolve(),
    knowsModel: ({ model }) => model === 'demo-echo',
    faults: new Faults(log),
    log: Object.assign(Object.create(log) as typeof log, {
      warn: (fields: object, text: string) => warnings.push([fields, text]),
    }),
  });
  await keeper.maintainShards();
  t.deepEqual(warnings, [
    [
      { waiting: { 'from-elsewhere': 2 } },
      'jobs wait for a model that is not in the catalog of this worker; they run once a worker has it',
    ],
  ]);
});
