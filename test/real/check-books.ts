import { checkBalances, checkReceipts, verifyLedger, waitUntilQuiet } from '../crash/audit.ts';
import type { Receipt } from '../crash/paid-load.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/accounts/hot-account-store.ts';
import { ReservationStore } from '../../shared/money/reservation-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';

/** The reservations of requests whose process died are released within this time. */
const releaseTimeoutMs = 60_000;

/**
 * The balance of accounts created by these tests: enough for the maximum reservations of all their concurrent calls.
 */
export const firstBalance = '100000';

/**
 * Audits the money of a stack after the load has ended: each receipt has one ledger entry, each balance is the sum of
 * its entries, in Redis and in MongoDB, nothing is reserved, and `ledger verify` finds no difference.
 * @returns the problems found
 */
export async function checkLedger(
  { redis, mongo, config }: TestStack,
  accounts: readonly TestAccount[],
  receipts: readonly Receipt[],
): Promise<string[]> {
  const ledger = new LedgerStore(mongo.db);
  const accountStore = new AccountStore(mongo.db, config);
  const stores = {
    redis,
    ledger,
    accounts: accountStore,
    hotAccounts: new HotAccountStore(redis, accountStore, ledger),
    prices: new PriceStore(mongo.db),
    reservations: new ReservationStore(redis),
  };
  const addedNano = new Map(accounts.map(({ id }) => [id, parseRub(firstBalance)!]));
  await waitUntilQuiet(stores, releaseTimeoutMs);
  return [
    ...(await checkReceipts(stores, receipts)),
    ...(await checkBalances(stores, addedNano)),
    ...(await verifyLedger(stores, 0)),
  ];
}
