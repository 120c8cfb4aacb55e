import { checkBalances, checkReceipts, verifyLedger, waitUntilQuiet } from '../crash/audit.ts';
import type { Receipt } from '../crash/paid-load.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { HotAccountStore } from '../../shared/billing/hot-account-store.ts';
import { ReservationStore } from '../../shared/billing/reservation-store.ts';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../shared/ledger/price-store.ts';
import { parseRub } from '../../shared/pricing/money.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';

/** Requests that died with their process are released in this time. */
const releaseTimeoutMs = 60_000;

/** Of accounts that these tests make: enough to reserve the most that all of their calls at once can cost. */
export const firstBalance = '100000';

/**
 * What is wrong with the money of a stack whose load has ended: each receipt is one entry of the ledger, each balance is what
 * its entries sum to, in Redis and in MongoDB, nothing is reserved, and `ledger verify` finds no difference.
 */
export async function checkBooks(
  { redis, mongo, config }: TestStack,
  accounts: readonly TestAccount[],
  receipts: readonly Receipt[],
): Promise<string[]> {
  const ledger = new LedgerStore(mongo.db);
  const accountStore = new AccountStore(mongo.db, config);
  const books = {
    redis,
    ledger,
    accounts: accountStore,
    hotAccounts: new HotAccountStore(redis, accountStore, ledger),
    prices: new PriceStore(mongo.db),
    reservations: new ReservationStore(redis),
  };
  const addedNano = new Map(accounts.map(({ id }) => [id, parseRub(firstBalance)!]));
  await waitUntilQuiet(books, releaseTimeoutMs);
  return [
    ...(await checkReceipts(books, receipts)),
    ...(await checkBalances(books, addedNano)),
    ...(await verifyLedger(books, 0)),
  ];
}
