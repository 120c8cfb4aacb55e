import {
  verifyLedger,
  type AccountMoney,
  type VerifyDeps,
} from '../../../shared/admin/verify/verify-ledger.ts';
import type { Difference } from '../../../shared/admin/verify/check-account.ts';
import { LedgerChanged } from '../../../shared/admin/verify/snapshot.ts';
import { callRedis } from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';

/** More are left to the command, which may take its time. */
const maxVerifiedEntries = 5_000;
/** Entries of all accounts of a shard that are not in MongoDB yet, and reservations: all are read to check one account. */
const maxOfShard = 5_000;
/** Of many differences, the first ones say what is wrong. */
const maxDifferences = 100;
const effort = { attempts: 5, pauseMs: 50 };

/** Why nothing was checked. */
export type WhyNotVerified = 'too_many_entries' | 'ledger_behind' | 'busy';

export interface AccountVerification {
  /** Of the ledger. Only counted up to a bound. */
  readonly entries: number;
  /** Null if it would take too much to check them here. */
  readonly checked: {
    readonly money: AccountMoney;
    readonly differences: readonly Difference[];
    readonly differenceCount: number;
  } | null;
  /** Null if they were checked. */
  readonly whyNot: WhyNotVerified | null;
}

/**
 * Verifies the ledger of an account, unless there is too much to read. Changes nothing.
 * @throws the signal's reason, once the caller has its answer
 */
export async function verifyAccount(
  deps: VerifyDeps,
  account: string,
  signal: AbortSignal,
): Promise<AccountVerification> {
  const entries = await deps.ledger.countEntries(account, maxVerifiedEntries + 1);
  const whyNot = entries > maxVerifiedEntries ? 'too_many_entries' : await findObstacle(deps, account);
  if (whyNot !== null) return { entries, checked: null, whyNot };
  signal.throwIfAborted();
  try {
    return await verify(deps, account, signal);
  } catch (error) {
    if (error instanceof LedgerChanged) return { entries, checked: null, whyNot: 'busy' };
    throw error;
  }
}

async function findObstacle({ redis }: VerifyDeps, account: string): Promise<WhyNotVerified | null> {
  const shard = shardOf(account);
  const [pending, reserved] = await Promise.all([
    callRedis(() => redis.xlen(redisKeys.ledgerStream(shard))),
    callRedis(() => redis.hlen(redisKeys.reservations(shard))),
  ]);
  if (pending > maxOfShard) return 'ledger_behind';
  return reserved > maxOfShard ? 'busy' : null;
}

async function verify(deps: VerifyDeps, account: string, signal: AbortSignal): Promise<AccountVerification> {
  const { entries, differences, money } = await verifyLedger(deps, {
    account,
    releaseOrphans: false,
    onProgress: () => undefined,
    effort: { ...effort, signal },
  });
  return {
    entries,
    checked: {
      money: money ?? { added: '0', taken_back: '0', spent: '0', balance: '0' },
      differences: differences.slice(0, maxDifferences),
      differenceCount: differences.length,
    },
    whyNot: null,
  };
}
