import type { ChainableCommander } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseReservation, type Reservation } from '../../money/reservation-store.ts';
import { parseHotBudget, type HotBudget } from '../../accounts/budget-periods.ts';
import type { AccountDocument, AccountStore } from '../../accounts/account-store.ts';
import { isAfter, tryParseLedgerEntry, type LedgerEntry } from '../../ledger/usage-event.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys } from '../../platform/redis/redis-keys.ts';
import { LuaScript } from '../../platform/redis/lua-script.ts';

/** The Redis side of an account's money. */
export interface HotMoney {
  readonly balanceNano: bigint;
  readonly reservedNano: bigint;
  readonly totalAddedNano: bigint;
  readonly freeRequests: number;
  readonly freeHeld: number;
  readonly charges: number;
  /** With the sums of their current periods. */
  readonly budgets: readonly HotBudget[];
}

/** An account in all stores at one moment. */
export interface Snapshot {
  readonly storedAccount: AccountDocument;
  /** Stream entries that are not applied to the account in MongoDB yet, oldest first. */
  readonly pending: readonly LedgerEntry[];
  readonly reservations: readonly Reservation[];
  readonly jobs: JobReservations;
  /** Null if the account is not loaded in Redis. */
  readonly hot: HotMoney | null;
}

/** What an account's durable jobs and batches have reserved. */
export interface JobReservations extends JobSums {
  /** The part of lines of batches. */
  readonly linesNano: bigint;
  /** The same, computed as the sum over the slices of its batches. */
  readonly summedLinesNano: bigint;
  /** The other amounts, computed as the sum over the jobs. Null if there are too many to read in one step. */
  readonly summed: JobSums | null;
}

interface JobSums {
  readonly costNano: bigint;
  readonly free: number;
  /** What jobs that were admitted on a day have reserved, by day since 1970. */
  readonly byDay: ReadonlyMap<number, bigint>;
}

/** Maximum number of jobs to sum. More would block Redis for other clients. */
const maxSummedJobs = 10_000;

const script = new LuaScript(
  new URL('./sum-job-reservations.lua', import.meta.url),
  ['prefix', 'accountId'],
  { constants: { maxSummedJobs } },
);

/**
 * Adds a query for the reservations of an account's durable jobs and batches to a transaction: the stored counters, and
 * the sums over the jobs unless there are too many. See the script for its reply.
 */
function sumJobReservations(transaction: ChainableCommander, shard: number, accountId: string): void {
  script.addTo(transaction, { prefix: redisKeys.jobsOf(shard), accountId });
}

const fields = ['bal', 'res', 'added', 'free', 'fres', 'charges', 'bud', 'obud'] as const;

/** How hard to try to read a ledger that changes. */
export interface SnapshotEffort {
  /** Everything is read again in each. */
  readonly attempts: number;
  /** Between attempts. */
  readonly pauseMs: number;
  /** Stops before the next attempt. */
  readonly signal?: AbortSignal;
}

/** The ledger was trimmed during each attempt to read it. */
export class LedgerChanged extends Error {
  constructor(shard: number, attempts: number) {
    super(`the ledger of shard ${shard} changed in ${attempts} consecutive attempts to read it`);
  }
}

/**
 * Takes a snapshot of these accounts of one shard, consistent between MongoDB and Redis. Redis is read in one
 * transaction. Everything is read again if the ledger was trimmed after MongoDB was read.
 * @throws LedgerChanged if the ledger changes too fast to be read; the signal's reason
 */
export async function takeSnapshots(
  redis: RedisClient,
  accounts: AccountStore,
  shard: number,
  ids: readonly string[],
  { attempts, pauseMs, signal }: SnapshotEffort,
): Promise<Snapshot[]> {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    if (attempt > 1 && pauseMs > 0) await sleep(pauseMs);
    signal?.throwIfAborted();
    const trimmed = await redis.get(redisKeys.ledgerTrimmed(shard));
    const documents = await accounts.findByIds(ids);
    const transaction = redis
      .multi()
      .get(redisKeys.ledgerTrimmed(shard))
      .hgetall(redisKeys.reservations(shard))
      .xrange(redisKeys.ledgerStream(shard), '-', '+');
    for (const { _id } of documents) {
      transaction.hmget(redisKeys.account(_id), ...fields);
      sumJobReservations(transaction, shard, _id);
    }
    const results = ((await transaction.exec()) ?? []).map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    });
    const [trimmedNow, held, raw, ...ofAccounts] = results as [
      string | null,
      Record<string, string>,
      [string, string[]][],
      ...(string | null)[][],
    ];
    if (trimmedNow !== trimmed) continue;
    const entries = raw.flatMap(([id, values]) => tryParseLedgerEntry(id, values) ?? []);
    const reservations = Object.entries(held).map(([id, value]) => parseReservation(id, value));
    return documents.map((storedAccount, i) => {
      const applied = { ms: storedAccount.appliedMs, seq: storedAccount.appliedSeq };
      return {
        storedAccount,
        pending: entries.filter(
          ({ event, streamId }) => event.accountId === storedAccount._id && isAfter(streamId, applied),
        ),
        reservations: reservations.filter((one) => one.accountId === storedAccount._id),
        jobs: toJobReservations(ofAccounts[2 * i + 1] ?? []),
        hot: toHotMoney(ofAccounts[2 * i] ?? []),
      };
    });
  }
  throw new LedgerChanged(shard, attempts);
}

function toJobReservations(reply: readonly (string | null)[]): JobReservations {
  const [cost, free, lines, days, summedCost, summedFree, summedLines, summedDays] = reply;
  const isSummed = summedCost !== null && summedCost !== undefined;
  return {
    ...toJobSums(cost, free, days),
    linesNano: BigInt(lines ?? '0'),
    summedLinesNano: BigInt(summedLines ?? '0'),
    summed: isSummed ? toJobSums(summedCost, summedFree, summedDays) : null,
  };
}

type Text = string | null | undefined;

const toJobSums = (cost: Text, free: Text, days: Text): JobSums => ({
  costNano: BigInt(cost ?? '0'),
  free: Number(free ?? 0),
  byDay: new Map(
    (days ?? '')
      .split(' ')
      .filter((word) => word !== '')
      .map((word) => word.split(':'))
      .map(([day, nano]) => [Number(day), BigInt(nano ?? '0')]),
  ),
});

function toHotMoney(values: readonly (string | null)[]): HotMoney | null {
  const [balance, reserved, added, free, freeHeld, charges, ...budgets] = values;
  if (balance === null || balance === undefined) return null;
  return {
    balanceNano: BigInt(balance),
    reservedNano: BigInt(reserved ?? '0'),
    totalAddedNano: BigInt(added ?? '0'),
    freeRequests: Number(free ?? 0),
    freeHeld: Number(freeHeld ?? 0),
    charges: Number(charges ?? 0),
    // What lines of batches have reserved is not part of the sums.
    budgets: budgets.flatMap((text) => parseHotBudget(text, 0n, Date.now()) ?? []),
  };
}
