import type { ChainableCommander } from 'ioredis';
import { LuaScript } from '../../../shared/platform/redis/lua-script.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';

/** Maximum number of jobs to sum. More would block Redis for other clients. */
const maxSummedJobs = 10_000;

const script = new LuaScript(
  new URL('./sum-job-reservations.lua', import.meta.url),
  ['prefix', 'accountId'],
  { constants: { maxSummedJobs } },
);

/**
 * Adds a query for the reservations of an account's durable jobs to a transaction: the stored counters, and the sum
 * over the jobs unless there are too many. It returns `[cost, free, summed cost, summed free]`.
 */
export function sumJobReservations(transaction: ChainableCommander, shard: number, accountId: string): void {
  script.addTo(transaction, { prefix: redisKeys.jobsOf(shard), accountId });
}
