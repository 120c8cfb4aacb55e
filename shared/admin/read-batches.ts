import { hasBatchEnded, type BatchRecord, type BatchStatus } from '../work/batches/batch-record.ts';
import { BatchStore } from '../work/batches/batch-store.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardCount } from '../platform/redis/redis-keys.ts';
import { readLatestMembers, type OwnedId } from './latest-members.ts';

/** Batches of an account that are read together. */
const pageSize = 100;

/**
 * Yields batches, newest first. Ended ones of all accounts are in the order of their ends, latest first.
 * @param accountId of one account; null for all
 * @param status only batches with it; null for those that have not ended
 */
export async function* readBatches(
  redis: RedisClient,
  accountId: string | null,
  status: BatchStatus | null,
): AsyncGenerator<BatchRecord> {
  const isWanted = (batch: BatchRecord): boolean =>
    status === null ? !hasBatchEnded(batch) : batch.status === status;
  for await (const batch of readAll(redis, accountId, status)) if (isWanted(batch)) yield batch;
}

function readAll(redis: RedisClient, accountId: string | null, status: BatchStatus | null) {
  if (accountId !== null) return readOfAccount(redis, accountId);
  const hasEnded = status !== null && hasBatchEnded({ status });
  return hasEnded ? readEnded(redis) : readUnfinished(redis);
}

async function* readOfAccount(redis: RedisClient, accountId: string): AsyncGenerator<BatchRecord> {
  const store = new BatchStore(redis);
  let after: string | null = null;
  do {
    const page: readonly BatchRecord[] = await store.list(accountId, after, pageSize);
    yield* page;
    after = page.length < pageSize ? null : page.at(-1)!.id;
  } while (after !== null);
}

const shards = Array.from({ length: shardCount }, (_, shard) => shard);

async function* readEnded(redis: RedisClient): AsyncGenerator<BatchRecord> {
  const store = new BatchStore(redis);
  const keys = shards.map((shard) => redisKeys.batchesEnded(shard));
  for await (const page of readLatestMembers(redis, keys)) yield* await findAll(store, page);
}

async function findAll(store: BatchStore, batches: readonly OwnedId[]): Promise<BatchRecord[]> {
  const found = await Promise.all(batches.map(({ accountId, id }) => store.find(accountId, id)));
  return found.filter((batch) => batch !== null);
}

/** An account has few unfinished batches, so their ids are sorted in memory. */
async function* readUnfinished(redis: RedisClient): AsyncGenerator<BatchRecord> {
  const store = new BatchStore(redis);
  const open: (OwnedId & { readonly createdAtMs: number })[] = [];
  for (const accountId of await findAccounts(redis)) {
    const listed = await callRedis(() =>
      redis.zrange(redisKeys.batchesOpen(accountId), '0', '-1', 'WITHSCORES'),
    );
    for (let i = 0; i + 1 < listed.length; i += 2)
      open.push({ accountId, id: listed[i]!, createdAtMs: Number(listed[i + 1]) });
  }
  open.sort((one, other) => other.createdAtMs - one.createdAtMs);
  for (let from = 0; from < open.length; from += pageSize)
    yield* await findAll(store, open.slice(from, from + pageSize));
}

/**
 * Finds the accounts with unfinished batches. A batch has a window until it is stopped; from then on its lines are with a
 * worker, or wait for one.
 */
async function findAccounts(redis: RedisClient): Promise<ReadonlySet<string>> {
  const accounts = new Set<string>();
  const add = (member: string): void => {
    accounts.add(member.slice(0, member.indexOf(' ')));
  };
  for (const shard of shards) {
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
  }
  return accounts;
}
