// decision 0047
import type { AccountStore } from '../../shared/accounts/account-store.ts';
import type { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { findMissing, positionOf } from '../../shared/ledger/missing-entries-store.ts';
import type { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { formatStreamId, isAfter, parseStreamId, type StreamId } from '../../shared/ledger/usage-event.ts';
import { hasLostEntries, advanceTrimPosition, advanceShard } from './advance-stream.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';

/** Maximum number of accounts that are looked up in Redis concurrently. */
const idsPerRead = 1_000;

export interface RestoreDeps {
  readonly redis: RedisClient;
  readonly store: LedgerStore;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
  readonly log: Logger;
}

/**
 * Restores accounts from MongoDB, and logs it, after Redis has come back without its last writes. The balances in Redis
 * are then too high or too low, because MongoDB recorded charges and refills that Redis lost. Two kinds of entries may
 * be lost: those up to the checkpoint, which the sums in MongoDB include, and those of a batch that was not written
 * completely, which are rows in MongoDB and may be missing from the sums.
 * @param trimmed ID of the last entry that Redis recorded as trimmed
 * @param intent accounts that may have rows after the checkpoint
 * @returns whether anything was lost
 */
export async function restoreLostEntries(
  dependencies: RestoreDeps,
  shard: number,
  trimmed: string,
  intent: ReadonlySet<string>,
): Promise<boolean> {
  const { redis, store, accounts, hotAccounts, log } = dependencies;
  const checkpoint = await store.readCheckpoint(shard);
  const hasLostPosition =
    isAfter(checkpoint, parseStreamId(trimmed)) && (await hasLostEntries(redis, shard, checkpoint));
  const missingRows = await findMissing(redis, shard, await store.findAfter([...intent], checkpoint));
  if (!hasLostPosition && missingRows.length === 0) return false;
  // Read this again after the stream, because another reader may have finished and trimmed a batch since.
  const trimPosition = parseStreamId((await redis.get(redisKeys.ledgerTrimmed(shard))) ?? '0-0');
  const isRedisBehind = hasLostPosition && isAfter(checkpoint, trimPosition);
  const rows = missingRows.filter((row) => isAfter(positionOf(row), trimPosition));
  if (!isRedisBehind && rows.length === 0) return false;
  const appliedPositions = isRedisBehind
    ? await accounts.findAppliedSince(trimPosition.ms)
    : new Map<string, StreamId>();
  const cached = await findCached(redis, shard, [...appliedPositions.keys()]);
  // Entries of a missing account have no balance to change; `ledger verify` reports them.
  const accountsOfRows = await store.findAppliedPositions(rows.map(({ accountId }) => accountId));
  const ends = new Map([...cached.map((id) => [id, appliedPositions.get(id)!] as const), ...accountsOfRows]);
  const last = findLatest([checkpoint, ...rows.map(positionOf)]);
  await advanceShard(redis, shard, findLatest([last, ...ends.values()]));
  for (const id of ends.keys()) await hotAccounts.reload(id);
  // Do this last: a reader that takes over before this restores all accounts again.
  await advanceTrimPosition(redis, shard, last);
  log.error(
    { shard, redisHas: formatStreamId(trimPosition), mongodbHas: formatStreamId(last), restored: ends.size },
    'Redis lost entries that MongoDB has; accounts restored from MongoDB',
  );
  return true;
}

const findLatest = (ids: readonly StreamId[]): StreamId =>
  ids.reduce((latest, id) => (isAfter(id, latest) ? id : latest));

/** Returns the accounts of the shard that are in Redis. Any other account is restored on its first use. */
async function findCached(redis: RedisClient, shard: number, ids: readonly string[]): Promise<string[]> {
  const ofShard = ids.filter((id) => shardOf(id) === shard);
  const cached: string[] = [];
  for (let from = 0; from < ofShard.length; from += idsPerRead) {
    const chunk = ofShard.slice(from, from + idsPerRead);
    const found = await Promise.all(chunk.map((id) => redis.exists(redisKeys.account(id))));
    cached.push(...chunk.filter((_, i) => found[i] === 1));
  }
  return cached;
}
