import {
  verifyLedger,
  type AccountMoney,
  type VerifyDeps,
} from '../../../shared/admin/verify/verify-ledger.ts';
import type { Difference } from '../../../shared/admin/verify/check-account.ts';

/** More are left to the command, which may take its time. */
const maxVerifiedEntries = 5_000;
/** Of many differences, the first ones say what is wrong. */
const maxDifferences = 100;

export interface AccountVerification {
  /** Of the ledger. Only counted up to a bound. */
  readonly entries: number;
  /** Null if there are too many entries to check them here. */
  readonly checked: {
    readonly money: AccountMoney;
    readonly differences: readonly Difference[];
    readonly differenceCount: number;
  } | null;
}

/** Verifies the ledger of an account, unless it has more than `maxVerifiedEntries`. Changes nothing. */
export async function verifyAccount(deps: VerifyDeps, account: string): Promise<AccountVerification> {
  const counted = await deps.ledger.countEntries(account, maxVerifiedEntries + 1);
  if (counted > maxVerifiedEntries) return { entries: counted, checked: null };
  const verification = await verifyLedger(deps, {
    account,
    releaseOrphans: false,
    onProgress: () => undefined,
  });
  const { entries, differences } = verification;
  return {
    entries,
    checked: {
      money: verification.money ?? { added: '0', spent: '0', balance: '0' },
      differences: differences.slice(0, maxDifferences),
      differenceCount: differences.length,
    },
  };
}
