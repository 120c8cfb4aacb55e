import { parseReservation, type Reservation } from '../../../shared/billing/reservation-store.ts';
import type { AccountDocument, AccountStore } from '../../../shared/accounts/account-store.ts';
import { isAfter, parseLedgerEntry, type LedgerEntry } from '../../../shared/ledger/usage-event.ts';
import type { RedisClient } from '../../../shared/redis/redis-client.ts';
import { redisKeys } from '../../../shared/redis/redis-keys.ts';

/** What Redis has of an account's money. */
export interface HotMoney {
  readonly balanceNano: bigint;
  readonly reservedNano: bigint;
  readonly totalAddedNano: bigint;
  readonly freeRequests: number;
  readonly freeHeld: number;
  readonly charges: number;
}

/** An account as it was everywhere at one moment. */
export interface Snapshot {
  readonly atRest: AccountDocument;
  /** Entries in the stream that the account at rest does not have yet, oldest first. */
  readonly pending: readonly LedgerEntry[];
  readonly reservations: readonly Reservation[];
  /** Null where the account was not used since Redis holds accounts. */
  readonly hot: HotMoney | null;
}

const fields = ['bal', 'res', 'added', 'free', 'fres', 'charges'] as const;
const attempts = 50;

/**
 * Accounts of one shard, each as MongoDB and Redis had it at one moment: Redis is read at once, and again where the
 * ledger was trimmed since MongoDB was read.
 * @throws Error where the ledger moves too fast to be read
 */
export async function takeSnapshots(
  redis: RedisClient,
  accounts: AccountStore,
  shard: number,
  ids: readonly string[],
): Promise<Snapshot[]> {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const trimmed = await redis.get(redisKeys.ledgerTrimmed(shard));
    const documents = await accounts.findByIds(ids);
    const read = redis
      .multi()
      .get(redisKeys.ledgerTrimmed(shard))
      .hgetall(redisKeys.reservations(shard))
      .xrange(redisKeys.ledgerStream(shard), '-', '+');
    for (const { _id } of documents) read.hmget(redisKeys.account(_id), ...fields);
    const answers = ((await read.exec()) ?? []).map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    });
    const [trimmedNow, held, raw, ...hot] = answers as [
      string | null,
      Record<string, string>,
      [string, string[]][],
      ...(string | null)[][],
    ];
    if (trimmedNow !== trimmed) continue;
    const entries = raw.map(([id, values]) => parseLedgerEntry(id, values));
    const reservations = Object.entries(held).map(([id, value]) => parseReservation(id, value));
    return documents.map((atRest, i) => {
      const applied = { ms: atRest.appliedMs, seq: atRest.appliedSeq };
      return {
        atRest,
        pending: entries.filter(
          ({ event, streamId }) => event.accountId === atRest._id && isAfter(streamId, applied),
        ),
        reservations: reservations.filter((one) => one.accountId === atRest._id),
        hot: toHotMoney(hot[i] ?? []),
      };
    });
  }
  throw new Error(`the ledger of shard ${shard} moved on ${attempts} times while it was read`);
}

function toHotMoney(values: readonly (string | null)[]): HotMoney | null {
  const [balance, reserved, added, free, freeHeld, charges] = values;
  if (balance === null || balance === undefined) return null;
  return {
    balanceNano: BigInt(balance),
    reservedNano: BigInt(reserved ?? '0'),
    totalAddedNano: BigInt(added ?? '0'),
    freeRequests: Number(free ?? 0),
    freeHeld: Number(freeHeld ?? 0),
    charges: Number(charges ?? 0),
  };
}
