import type { AccountStore } from '../../shared/accounts/account-store.ts';
import type { HotAccountStore } from '../../shared/billing/hot-account-store.ts';
import { findMissing, placeOf } from '../../shared/ledger/forgotten-entries-store.ts';
import type { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { formatStreamId, isAfter, parseStreamId, type StreamId } from '../../shared/ledger/usage-event.ts';
import { hasForgotten, rememberCheckpoint, wakeShard } from '../../shared/ledger/wake-stream.ts';
import type { RedisClient } from '../../shared/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';
import type { Logger } from '../../shared/runtime/logger.ts';

/** Accounts that Redis is asked for at once. */
const idsPerRead = 1_000;

export interface RestoreForgottenDependencies {
  readonly redis: RedisClient;
  readonly store: LedgerStore;
  readonly accounts: AccountStore;
  readonly hotAccounts: HotAccountStore;
  readonly log: Logger;
}

/**
 * A Redis that came back without its last moments has accounts that are richer, or poorer, than MongoDB, which had been
 * told of charges and refills since. Those accounts are restored from MongoDB, and it is said. Two kinds of entries may be
 * forgotten: those up to the checkpoint, which the sums hold, and those of a batch that was not written to its end,
 * which are rows and may be in no sum.
 *
 * @param trimmed id of the last entry that Redis remembers to have trimmed
 * @param intent accounts that may have rows behind the checkpoint
 * @returns whether anything was forgotten
 */
export async function restoreForgotten(
  dependencies: RestoreForgottenDependencies,
  shard: number,
  trimmed: string,
  intent: ReadonlySet<string>,
): Promise<boolean> {
  const { redis, store, accounts, hotAccounts, log } = dependencies;
  const checkpoint = await store.readCheckpoint(shard);
  const isMissing =
    isAfter(checkpoint, parseStreamId(trimmed)) && (await hasForgotten(redis, shard, checkpoint));
  const missing = await findMissing(redis, shard, await store.findAfter([...intent], checkpoint));
  if (!isMissing && missing.length === 0) return false;
  // Read after the stream: another reader may have come to the end of a batch meanwhile, and trimmed it.
  const known = parseStreamId((await redis.get(redisKeys.ledgerTrimmed(shard))) ?? '0-0');
  const isBehind = isMissing && isAfter(checkpoint, known);
  const rows = missing.filter((row) => isAfter(placeOf(row), known));
  if (!isBehind && rows.length === 0) return false;
  const summed = isBehind ? await accounts.findAppliedSince(known.ms) : new Map<string, StreamId>();
  const held = await findHeld(redis, shard, [...summed.keys()]);
  // Entries of an account that is not there have no balance to move; `ledger verify` names them.
  const touched = await store.findAccountsApplied(rows.map(({ accountId }) => accountId));
  const ends = new Map([...held.map((id) => [id, summed.get(id)!] as const), ...touched]);
  const last = findLatest([checkpoint, ...rows.map(placeOf)]);
  await wakeShard(redis, shard, findLatest([last, ...ends.values()]));
  for (const id of ends.keys()) await hotAccounts.reload(id);
  // Last: a reader that takes over before this restores them all again.
  await rememberCheckpoint(redis, shard, last);
  log.error(
    { shard, redisHas: formatStreamId(known), mongodbHas: formatStreamId(last), restored: ends.size },
    'Redis has forgotten entries that MongoDB has; accounts are restored from MongoDB',
  );
  return true;
}

const findLatest = (places: readonly StreamId[]): StreamId =>
  places.reduce((latest, place) => (isAfter(place, latest) ? place : latest));

/** Accounts of the shard that Redis holds; any other is restored by its first use. */
async function findHeld(redis: RedisClient, shard: number, ids: readonly string[]): Promise<string[]> {
  const own = ids.filter((id) => shardOf(id) === shard);
  const held: string[] = [];
  for (let from = 0; from < own.length; from += idsPerRead) {
    const some = own.slice(from, from + idsPerRead);
    const found = await Promise.all(some.map((id) => redis.exists(redisKeys.account(id))));
    held.push(...some.filter((_, i) => found[i] === 1));
  }
  return held;
}
