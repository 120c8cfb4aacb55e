import { toRubNumber } from '../encoding/money.ts';
import { callRedis } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { BatchStore } from '../work/batches/batch-store.ts';
import { statusLetter } from '../work/jobs/job-record.ts';
import type { JobStatus } from '../contract/job-terms.ts';
import type { AdminDeps } from './admin-deps.ts';
import { countRequests } from './count-requests.ts';
import { toDryRun } from './dry-run.ts';

/** Unfinished batches of an account that are read. It has fewer, unless its operator allows more. */
const maxBatches = 1_000;

/** What a ban of an account would end, and the balance that stays. */
export async function dryRunBan(
  { redis, hotAccounts }: Pick<AdminDeps, 'redis' | 'hotAccounts'>,
  id: string,
) {
  const countJobs = (status: JobStatus): Promise<number> =>
    callRedis(() => redis.zcard(redisKeys.jobsList(id, statusLetter(status))));
  const [account, requests, waiting, running, batchIds] = await Promise.all([
    hotAccounts.get(id),
    countRequests(redis, id),
    countJobs('queued'),
    countJobs('active'),
    callRedis(() => redis.zrange(redisKeys.batchesOpen(id), '0', String(maxBatches - 1))),
  ]);
  const store = new BatchStore(redis);
  const batches = await Promise.all(batchIds.map((batchId) => store.find(id, batchId)));
  const lines = batches.reduce((sum, batch) => sum + (batch === null ? 0 : countLeft(batch)), 0);
  return toDryRun(
    {
      requests: requests.count,
      jobs_waiting: waiting,
      jobs_running: running,
      batches: batchIds.length,
      lines,
      reserved: toRubNumber(account.reservedNano),
      balance: toRubNumber(account.balanceNano),
    },
    requests.isExact && batchIds.length < maxBatches,
  );
}

/** Lines of a batch without a result. */
export const countLeft = ({
  lines,
  succeeded,
  failed,
}: {
  readonly lines: number;
  readonly succeeded: number;
  readonly failed: number;
}): number => Math.max(0, lines - succeeded - failed);

/** Who uses the key of an account. */
export async function dryRunRotation(
  { redis, hotAccounts, web }: Pick<AdminDeps, 'redis' | 'hotAccounts' | 'web'>,
  id: string,
) {
  const [account, requests, recent, link] = await Promise.all([
    hotAccounts.get(id),
    countRequests(redis, id),
    hotAccounts.readRecentUse(id),
    web.links.findByAccount(id),
  ]);
  const user = link === null ? null : await web.users.findById(link.userId);
  return toDryRun(
    {
      requests: requests.count,
      requests_last_hour: recent.requests,
      last_used_at: account.lastUsedAt?.toISOString() ?? null,
      user_email: user?.email ?? null,
    },
    requests.isExact,
  );
}
