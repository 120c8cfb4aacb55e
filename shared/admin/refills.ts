import { toRubNumber } from '../encoding/money.ts';
import { RefillListStore } from '../ledger/refill-list-store.ts';
import { sourceOf, type RefillLogDocument } from '../ledger/refill-rows.ts';
import type { AdminDeps } from './admin-deps.ts';
import { toPage, type Page } from './page.ts';

/** A refill as shown to operators. */
export const describeRefill = (row: RefillLogDocument) => ({
  id: row._id,
  created_at: row.at.toISOString(),
  source: sourceOf(row),
  amount: toRubNumber(row.amountNano),
  free_requests: row.freeRequests,
  code: row.code === '' ? null : row.code,
  note: row.note ?? null,
  token: row.token ?? null,
});

/**
 * Lists the refills of an account, newest first.
 * @param after the number of the last refill of the page before; null for the first page
 * @throws AppError `invalid_api_key` if there is no such account
 */
export async function listRefills(
  { ledger, redis, hotAccounts }: Pick<AdminDeps, 'ledger' | 'redis' | 'hotAccounts'>,
  accountId: string,
  { limit, after }: { readonly limit: number; readonly after: number | null },
): Promise<Page<RefillLogDocument>> {
  const account = await hotAccounts.get(accountId);
  const found = await new RefillListStore(ledger, redis).readBefore(account, after, limit + 1);
  return toPage(found, limit, ({ ordinal }) => String(ordinal));
}
