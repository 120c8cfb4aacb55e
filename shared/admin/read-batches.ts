import { hasBatchEnded, type BatchRecord, type BatchStatus } from '../work/batches/batch-record.ts';
import { BatchStore } from '../work/batches/batch-store.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';
import { readLatestMembers, takeWanted, type ListedRecord } from './latest-members.ts';
import { comparePlaces, type ListPlace } from './list-place.ts';
import type { Page } from './page.ts';

export interface BatchFilter {
  /** Only of this account; null for all. */
  readonly accountId: string | null;
  /** Only with this status; null for those that have not ended. */
  readonly status: BatchStatus | null;
}

/** Batches that are read together. */
const pageSize = 100;
/** Accounts whose lists are read together. */
const accountsPerRead = 100;

/** Yields batches, newest first. Ended ones of all accounts are in the order of their ends, latest first. */
export async function* readBatches(redis: RedisClient, filter: BatchFilter): AsyncGenerator<BatchRecord> {
  for await (const { record } of readFrom(redis, filter, null, pageSize))
    if (record !== null && isWanted(record, filter)) yield record;
}

/**
 * Lists batches in the order of `readBatches`. A page reads the records of its own batches, and of those among them that
 * have another status: at most 1 000, after which it ends with fewer batches than it may have.
 */
export async function listBatches(
  redis: RedisClient,
  filter: BatchFilter,
  { limit, after }: { readonly limit: number; readonly after: ListPlace | null },
): Promise<Page<BatchRecord>> {
  const listed = readFrom(redis, filter, after, limit + 1);
  return await takeWanted(listed, (batch) => isWanted(batch, filter), limit);
}

const isWanted = (batch: BatchRecord, { status }: BatchFilter): boolean =>
  status === null ? !hasBatchEnded(batch) : batch.status === status;

/** Yields the batches of a list after a place, also those that are not wanted. */
async function* readFrom(
  redis: RedisClient,
  filter: BatchFilter,
  after: ListPlace | null,
  size: number,
): AsyncGenerator<ListedRecord<BatchRecord>> {
  const store = new BatchStore(redis);
  for await (const places of readPlaces(redis, filter, after, size)) {
    const found = await Promise.all(places.map(({ accountId, id }) => store.find(accountId, id)));
    for (const [i, place] of places.entries()) yield { place, record: found[i]! };
  }
}

async function* readPlaces(
  redis: RedisClient,
  { accountId, status }: BatchFilter,
  after: ListPlace | null,
  size: number,
): AsyncGenerator<readonly ListPlace[]> {
  if (status !== null && hasBatchEnded({ status })) {
    const lists =
      accountId === null
        ? shards.map((shard) => ({ key: redisKeys.batchesEnded(shard), accountId }))
        : [{ key: redisKeys.batchesOfAccount(accountId), accountId }];
    yield* readLatestMembers(redis, lists, after, size);
    return;
  }
  const open = await findOpen(redis, accountId === null ? await findAccounts(redis) : [accountId]);
  const rest = after === null ? open : open.filter((place) => comparePlaces(place, after) > 0);
  for (let from = 0; from < rest.length; from += size) yield rest.slice(from, from + size);
}

const shards = Array.from({ length: shardCount }, (_, shard) => shard);

/** An account has few unfinished batches, so their ids are sorted in memory. */
async function findOpen(redis: RedisClient, accountIds: readonly string[]): Promise<ListPlace[]> {
  const open: ListPlace[] = [];
  for (let from = 0; from < accountIds.length; from += accountsPerRead) {
    const accounts = accountIds.slice(from, from + accountsPerRead);
    const lists = await Promise.all(
      accounts.map((accountId) =>
        callRedis(() => redis.zrange(redisKeys.batchesOpen(accountId), '0', '-1', 'WITHSCORES')),
      ),
    );
    for (const [i, listed] of lists.entries())
      for (let at = 0; at + 1 < listed.length; at += 2)
        open.push({ accountId: accounts[i]!, id: listed[at]!, atMs: Number(listed[at + 1]) });
  }
  return open.toSorted(comparePlaces);
}

/**
 * Finds the accounts with unfinished batches. A batch has a window until it is stopped; from then on its lines are with a
 * worker, or wait for one.
 */
async function findAccounts(redis: RedisClient): Promise<readonly string[]> {
  const accounts = new Set<string>();
  const add = (member: string): void => {
    accounts.add(member.slice(0, member.indexOf(' ')));
  };
  await Promise.all(
    shards.map(async (shard) => {
      for (const key of [redisKeys.batchWindows(shard), redisKeys.batchLeases(shard)]) {
        let cursor = '0';
        do {
          const [next, pairs] = await callRedis(() => redis.zscan(key, cursor, 'COUNT', 1_000));
          for (let i = 0; i < pairs.length; i += 2) add(pairs[i]!);
          cursor = next;
        } while (cursor !== '0');
      }
      let cursor = '0';
      do {
        const key = redisKeys.batchLines(shard);
        const [next, members] = await callRedis(() => redis.sscan(key, cursor, 'COUNT', 1_000));
        for (const member of members) add(member);
        cursor = next;
      } while (cursor !== '0');
    }),
  );
  return [...accounts];
}
