import test from 'ava';
import { cancelJob, recoverLostJobs } from '../../../shared/work/jobs/end-job-scripts.ts';
import type { JobRecord } from '../../../shared/work/jobs/job-record.ts';
import { JobStore } from '../../../shared/work/jobs/job-store.ts';
import { JobTurns } from '../../../shared/work/jobs/job-turns-store.ts';
import { placeJob } from '../../../shared/work/jobs/place-job-script.ts';
import { handBackJob, renewJobs, startJob, takeJob } from '../../../shared/work/jobs/run-job-scripts.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { redisChannels, redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { BatchKeeper } from '../../../workers/batches/batch-keeper.ts';
import { JobKeeper } from '../../../workers/maintenance/job-keeper.ts';
import { Faults } from '../../../workers/reporting/faults.ts';
import { expireJobLeases } from '../../support/audit-jobs.ts';
import { readBalance } from '../../support/billing.ts';
import { listenTo } from '../../support/listen-to.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { admitChat } from '../../support/place-jobs.ts';

/** Jobs whose `Cancel-After` has passed, at every point at which a process or a clock may fail. */

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

const log = createLogger('test', 'silent');
const line = { queue: 'chat', model: 'demo-echo' } as const;
const minuteMs = 60_000;

interface PlacedChat {
  readonly accountId: string;
  readonly id: string;
  readonly read: () => Promise<JobRecord>;
  /** Moves the time at which the job is cancelled to the past. */
  readonly makeOverdue: () => Promise<void>;
  readonly take: () => ReturnType<typeof takeJob>;
}

async function place(cancelAfterMs: number | null = minuteMs): Promise<PlacedChat> {
  const { redis } = services;
  const { id: accountId } = await services.createAccount({ balanceNano: 100_000_000_000n });
  const job = await admitChat(services, accountId, line.model);
  const { weight } = await placeJob(redis, redis, { ...job, cancelAfterMs });
  await new JobTurns(redis).add(line, accountId, weight);
  const { id } = job;
  return {
    accountId,
    id,
    read: async () => (await new JobStore(redis).find(accountId, id))!.job,
    makeOverdue: async () => {
      const at = Date.now() - 1;
      await redis.hset(redisKeys.job(accountId, id), 'ca', at);
      await redis.zadd(redisKeys.jobCancelTimes(shardOf(accountId)), at, `${accountId} ${id}`);
    },
    take: () => takeJob(redis, line, accountId, 'a-worker'),
  };
}

function createKeeper(redis: RedisClient = services.redis): JobKeeper {
  return new JobKeeper({
    redis,
    turns: new JobTurns(services.redis),
    batches: new BatchKeeper({
      redis: services.redis,
      turns: new JobTurns(services.redis),
      queueHook: () => Promise.resolve(),
      log,
    }),
    leases: new ShardLeases(services.redis, 'a-keeper', redisKeys.jobsLease),
    queueHook: () => Promise.resolve(),
    knowsModel: () => true,
    faults: new Faults(log),
    log,
  });
}

async function expectFree(
  t: { is: (a: unknown, b: unknown) => void; like: (a: JobRecord, b: object) => void },
  { accountId, id, read }: PlacedChat,
): Promise<void> {
  t.like(await read(), {
    status: 'cancelled',
    error: { code: 'job_cancelled' },
    receipt: { costNano: 0n, free: false },
  });
  t.is((await readBalance(services.redis, accountId)).reserved, 0n);
  const shard = shardOf(accountId);
  t.is(await services.redis.zscore(redisKeys.jobCancelTimes(shard), `${accountId} ${id}`), null);
  t.is(await services.redis.zscore(redisKeys.jobLeases(shard), `${accountId} ${id}`), null);
}

test.serial('a waiting job is ended, free of charge, and no longer counted as waiting', async (t) => {
  const [overdue, other] = [await place(), await place()];
  await overdue.makeOverdue();
  const turns = new JobTurns(services.redis);
  const { waiting } = await turns.counts('chat');
  await createKeeper().maintainShards();
  await expectFree(t, overdue);
  t.regex((await overdue.read()).error!.message, /Cancel-After/);
  t.is((await turns.counts('chat')).waiting, waiting - 1);
  t.is((await other.read()).status, 'queued');
  await cancelJob(services.redis, other.accountId, other.id);
});

test.serial(
  'a waiting job that no keeper has ended yet is ended by the worker that would take it',
  async (t) => {
    const job = await place();
    await job.makeOverdue();
    t.is((await job.take()).job, null);
    await expectFree(t, job);
  },
);

test.serial('a worker learns how long a job that it takes may take', async (t) => {
  const [timed, untimed] = [await place(), await place(null)];
  const { job } = await timed.take();
  t.true(job!.cancelInMs! > minuteMs - 30_000 && job!.cancelInMs! <= minuteMs, String(job!.cancelInMs));
  t.is((await untimed.take()).job!.cancelInMs, null);
});

test.serial(
  'a job that a worker runs is cancelled by its worker: it is notified at once, and finds the request in the record',
  async (t) => {
    const { redis } = services;
    const chat = await place();
    const { job } = await chat.take();
    t.is(await startJob(redis, job!), 'ok');
    await chat.makeOverdue();
    const control = await listenTo(t, services.redisUrl, redisChannels.control('a-worker'));
    await createKeeper().maintainShards();
    t.deepEqual(JSON.parse((await control.receive()).toString()), { action: 'cancel-job', jobId: chat.id });
    t.like(await chat.read(), { status: 'active', isCancelRequested: true });
    t.is((await renewJobs(redis, [job!])).get(chat.id), 'cancelled');
    t.is(await handBackJob(redis, job!), 'cancelled');
  },
);

test.serial(
  'without a keeper, a worker finds at its next heartbeat, start or stop that a job is overdue',
  async (t) => {
    const { redis } = services;
    const chat = await place();
    const { job } = await chat.take();
    t.is((await renewJobs(redis, [job!])).size, 0);
    await chat.makeOverdue();
    t.is(await startJob(redis, job!), 'overdue');
    t.is((await renewJobs(redis, [job!])).get(chat.id), 'overdue');
    t.is(await handBackJob(redis, job!), 'cancelled');
    t.is((await chat.read()).status, 'queued', 'only its worker ends it');
  },
);

test.serial(
  'an overdue job whose worker died is ended, free of charge, and not given to another worker',
  async (t) => {
    const { redis } = services;
    const chat = await place();
    const { job } = await chat.take();
    await startJob(redis, job!);
    await chat.makeOverdue();
    await expireJobLeases(redis);
    // A keeper recovers jobs only once it has had the shard for longer than a lease.
    const { ended, requeued } = await recoverLostJobs(redis, shardOf(chat.accountId));
    // Jobs of other tests may be in the same shard.
    t.true(ended >= 1);
    t.false(requeued.some(({ id }) => id === chat.id));
    await expectFree(t, chat);
  },
);

test.serial('a job whose worker died keeps its time when it waits again', async (t) => {
  const { redis } = services;
  const chat = await place();
  const { job } = await chat.take();
  await startJob(redis, job!);
  await expireJobLeases(redis);
  const { requeued } = await recoverLostJobs(redis, shardOf(chat.accountId));
  t.true(requeued.some(({ id }) => id === chat.id));
  await chat.makeOverdue();
  await createKeeper().maintainShards();
  await expectFree(t, chat);
});

test.serial(
  'if Redis’s clock is set back, the time of a job starts again instead of ending hours later',
  async (t) => {
    const { redis } = services;
    const hourMs = 60 * minuteMs;
    const [chat, unaffected] = [await place(), await place()];
    const key = redisKeys.job(chat.accountId, chat.id);
    const member = `${chat.accountId} ${chat.id}`;
    const cancelTimes = redisKeys.jobCancelTimes(shardOf(chat.accountId));
    // To Redis, the job was created in an hour.
    const { createdAtMs, cancelAtMs } = await chat.read();
    await redis.hset(key, 'at', createdAtMs + hourMs, 'ca', cancelAtMs! + hourMs);
    await redis.zadd(cancelTimes, cancelAtMs! + hourMs, member);
    const before = (await unaffected.read()).cancelAtMs;
    let aheadMs = hourMs;
    const stepping = new Proxy(redis, {
      get(target, name) {
        if (name !== 'time') {
          const value = Reflect.get(target, name, target) as unknown;
          return typeof value === 'function' ? (value.bind(target) as unknown) : value;
        }
        return async (): Promise<unknown> => {
          const [seconds, micros] = await target.time();
          return [Number(seconds) + aheadMs / 1_000, micros];
        };
      },
    });
    const keeper = createKeeper(stepping);
    await keeper.maintainShards();
    t.is((await chat.read()).cancelAtMs, cancelAtMs! + hourMs, 'nothing has happened yet');
    aheadMs = 0;
    await keeper.maintainShards();
    const corrected = (await chat.read()).cancelAtMs!;
    t.true(corrected <= Date.now() + minuteMs && corrected > Date.now(), String(corrected - Date.now()));
    t.is(Number(await redis.zscore(cancelTimes, member)), corrected);
    t.is((await unaffected.read()).cancelAtMs, before);
  },
);
