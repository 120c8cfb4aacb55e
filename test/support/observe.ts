import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { WorkerRegistryStore } from '../../shared/work/queue/worker-registry-store.ts';
import { redisKeys, shardCount } from '../../shared/platform/redis/redis-keys.ts';
import { findKeys } from './all-of-redis.ts';
import type { TestStack } from './stack.ts';
import { waitFor } from './wait-for.ts';
import { liveness } from '../../shared/platform/redis/liveness.ts';

/** Reads the state of a stack from its stores: balances in Redis, queues, and request logs in MongoDB. */

/** The nano-roubles of an amount in an API response. */
export function toNano(amount: number): bigint {
  const nano = parseRub(amount);
  if (nano === null) throw new Error(`${amount} is not an amount in roubles`);
  return nano;
}

/** Ids of the requests that hold a reservation, for one account or for all. */
export async function findReservations(stack: TestStack, accountId?: string): Promise<string[]> {
  const shards = await Promise.all(
    Array.from({ length: shardCount }, (_, shard) => stack.redis.hgetall(redisKeys.reservations(shard))),
  );
  return shards
    .flatMap((held) => Object.entries(held))
    .filter(([, value]) => accountId === undefined || value.startsWith(`${accountId} `))
    .map(([requestId]) => requestId);
}

/** All state that requests change: if two readings are equal, no request has changed anything in between. */
export interface StoredState {
  readonly balanceNano: bigint;
  readonly reservedNano: bigint;
  readonly freeRequests: number;
  readonly freeHeld: number;
  readonly reservations: readonly string[];
  /** Chats ever pushed to the ready queue. */
  readonly chatsPushed: number;
  /** Events ever written by BullMQ's queues: one per step of each job. */
  readonly jobEvents: number;
  /** Entries ever added to the ledger streams, including those already moved to MongoDB. */
  readonly ledgerEntries: number;
}

export async function readStoredState(stack: TestStack, accountId: string): Promise<StoredState> {
  const account = await stack.readAccount(accountId);
  const ledgers = Array.from({ length: shardCount }, (_, shard) => redisKeys.ledgerStream(shard));
  const queues = await findKeys(stack.redis, '{bull}:*:events');
  return {
    balanceNano: account.balanceNano,
    reservedNano: account.reservedNano,
    freeRequests: account.freeRequests,
    freeHeld: Number(await stack.redis.hget(redisKeys.account(accountId), 'fres')),
    reservations: await findReservations(stack, accountId),
    chatsPushed: Number((await stack.redis.get(redisKeys.pushedTo(redisKeys.readyQueue))) ?? 0),
    jobEvents: await countEverAdded(stack, queues),
    ledgerEntries: await countEverAdded(stack, ledgers),
  };
}

async function countEverAdded({ redis }: TestStack, streams: readonly string[]): Promise<number> {
  const counts = await Promise.all(
    streams.map(async (stream) => {
      if ((await redis.exists(stream)) === 0) return 0;
      const fields = (await redis.xinfo('STREAM', stream)) as unknown[];
      return Number(fields[fields.indexOf('entries-added') + 1]);
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Waits until the ledger has written the log row of a request to MongoDB, and returns it. */
export async function findRow(stack: TestStack, requestId: string): Promise<RequestLogDocument> {
  const rows = stack.mongo.db.collection<RequestLogDocument>('request_logs');
  return await waitFor(`the row of ${requestId}`, () => rows.findOne({ _id: requestId }));
}

/** The maximum time that a worker's report takes to arrive in Redis. */
const maxReportDelayMs = 50;

/** The nano-roubles by which the balance of an account is now below `initialRub`. */
export async function readAmountCharged(
  stack: TestStack,
  accountId: string,
  initialRub: string,
): Promise<bigint> {
  return parseRub(initialRub)! - (await stack.readAccount(accountId)).balanceNano;
}

export async function waitForNoReservation(stack: TestStack, accountId?: string): Promise<void> {
  await waitFor('the last reservation to end', async () => {
    return (await findReservations(stack, accountId)).length === 0;
  });
}

/**
 * Waits until this many embedding inputs are queued in the stack's workers. Workers report the number once per second;
 * reports sent before this call are ignored.
 */
export async function waitForQueuedInputs(stack: TestStack, count: number): Promise<void> {
  const registry = new WorkerRegistryStore(stack.redis);
  const [seconds, microseconds] = await stack.redis.time();
  const since =
    Number(seconds) * 1_000 + Number(microseconds) / 1_000 + maxReportDelayMs + liveness.worker.deadMs;
  let seen = -1;
  const isReached = async (): Promise<boolean> => {
    const [load, newer] = await Promise.all([
      registry.sumLoads('embedding'),
      stack.redis.zcount(redisKeys.workers('embedding'), since, '+inf'),
    ]);
    seen = load.waitingInputs;
    return newer > 0 && seen === count;
  };
  await waitFor(() => `${count} queued inputs, last seen ${seen}`, isReached);
}
