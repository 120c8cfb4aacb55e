import type mongoose from 'mongoose';
import type { Collection, Database } from '../platform/storage/mongo-client.ts';
import { LedgerConflict } from './ledger-conflict.ts';
import { findLowState, type LowBalance, type ThresholdState } from './low-balance.ts';
import { formatStreamId, nameDayOf, type StreamId } from './usage-event.ts';

/** The fields of an account in MongoDB that its ledger entries change. */
interface AccountSums {
  readonly _id: string;
  readonly appliedMs: number;
  readonly appliedSeq: number;
  readonly balanceNano: bigint;
  readonly lowBalanceNano?: bigint;
  readonly low?: LowBalance;
}

/** The last entry that an account's sums include, and its balance up to it. */
export interface AppliedAccount extends StreamId, ThresholdState {}

export const toAppliedAccount = ({
  appliedMs,
  appliedSeq,
  balanceNano,
  lowBalanceNano,
  low,
}: Omit<AccountSums, '_id'>): AppliedAccount => ({
  ms: appliedMs,
  seq: appliedSeq,
  balanceNano,
  lowBalanceNano: lowBalanceNano ?? null,
  isLow: low !== undefined,
});

/** Entries to be added to an account. */
export interface AccountSumsChange {
  readonly id: string;
  readonly from: AppliedAccount;
  readonly to: StreamId;
  readonly balanceNano: bigint;
  readonly addedNano: bigint;
  readonly freeRequests: number;
  /** What charges have cost, by the day to which budgets count them (`YYYY-MM-DD`). */
  readonly spentByDay: ReadonlyMap<string, bigint>;
  /** The highest ordinals among the added entries. */
  readonly charges: number;
  readonly codes: number;
}

/** A ledger row, as far as it changes its account. */
interface Row {
  readonly kind: 'charge' | 'refill';
  readonly at: Date;
  readonly amountNano: bigint;
  readonly freeRequests: number;
  readonly ordinal: number | null;
  readonly streamMs: number;
  readonly streamSeq: number;
  readonly day?: string;
}

/** The sums of accounts in MongoDB. */
export class AccountSumsStore {
  readonly #accounts: Collection<AccountSums>;

  constructor(db: Database) {
    this.#accounts = db.collection('accounts');
  }

  async findApplied(ids: readonly string[]): Promise<Map<string, AppliedAccount>> {
    const fields = { appliedMs: 1, appliedSeq: 1, balanceNano: 1, lowBalanceNano: 1, low: 1 };
    const found = await this.#accounts
      .find({ _id: { $in: [...ids] } })
      .project<AccountSums>(fields)
      .toArray();
    return new Map(found.map((document) => [document._id, toAppliedAccount(document)]));
  }

  /**
   * Adds sums to accounts. Changes an account only if nothing has been applied to it since `from` was read, and its
   * threshold has stayed.
   * @throws LedgerConflict if any account was not changed
   */
  async add(changes: readonly AccountSumsChange[]): Promise<void> {
    if (changes.length === 0) return;
    const { matchedCount } = await this.#accounts.bulkWrite(
      changes.map((change) => ({ updateOne: toUpdate(change) })),
      { ordered: false },
    );
    if (matchedCount < changes.length) throw new LedgerConflict();
  }
}

function toUpdate(change: AccountSumsChange) {
  const { id, from, to, balanceNano, addedNano, freeRequests, spentByDay, charges, codes } = change;
  const low = findLowState(from, balanceNano, formatStreamId(to));
  const spent = Array.from(spentByDay, ([day, spentNano]) => [`spentByDay.${day}`, spentNano]);
  const { ms: appliedMs, seq: appliedSeq, lowBalanceNano } = from;
  // `null` also matches an account without a threshold.
  const filter = { _id: id, appliedMs, appliedSeq, lowBalanceNano } as mongoose.mongo.Filter<AccountSums>;
  return {
    filter,
    update: {
      $inc: { balanceNano, totalAddedNano: addedNano, freeRequests, ...Object.fromEntries(spent) },
      $max: { charges, codes },
      $set: { appliedMs: to.ms, appliedSeq: to.seq, ...(low && { low }) },
      ...(low === null && { $unset: { low: '' as const } }),
    },
  };
}

/** Sums rows of one account, which are in the order of the stream. */
export function sumRows(id: string, from: AppliedAccount, rows: readonly Row[]): AccountSumsChange {
  const last = rows[rows.length - 1]!;
  const highest = (kind: Row['kind']): number =>
    Math.max(0, ...rows.filter((row) => row.kind === kind).map((row) => row.ordinal ?? 0));
  const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n);
  const refills = rows.filter((row) => row.kind === 'refill' && row.amountNano > 0n);
  const charges = rows.filter((row) => row.kind === 'charge');
  return {
    id,
    from,
    to: { ms: last.streamMs, seq: last.streamSeq },
    balanceNano: sum(rows.map((row) => row.amountNano)),
    addedNano: sum(refills.map((row) => row.amountNano)),
    freeRequests: rows.reduce((total, row) => total + row.freeRequests, 0),
    spentByDay: sumByDay(
      charges.map(({ at, day = nameDayOf(at), amountNano }) => ({
        day,
        costNano: -amountNano,
      })),
    ),
    charges: highest('charge'),
    codes: highest('refill'),
  };
}

/** Sums costs by day. Days without costs are left out. */
export function sumByDay(
  charges: readonly { readonly day: string; readonly costNano: bigint }[],
): Map<string, bigint> {
  const sums = new Map<string, bigint>();
  for (const { day, costNano } of charges)
    if (costNano !== 0n) sums.set(day, (sums.get(day) ?? 0n) + costNano);
  return sums;
}
