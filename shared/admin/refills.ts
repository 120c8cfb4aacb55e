import { toRubNumber } from '../encoding/money.ts';
import { RefillListStore, type RefilledAccount } from '../ledger/refill-list-store.ts';
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

export interface RefillRequest {
  readonly limit: number;
  /** The number of the last refill of the page before; null for the first page. */
  readonly after: number | null;
  /** Only those whose note or code has this text; null for all. */
  readonly search?: string | null;
}

const placeOf = ({ ordinal }: RefillLogDocument): string => String(ordinal);

/** Refills that are read for one page of a search. */
const maxRead = 1_000;
const readTogether = 200;

/** Reads back from a place until a page is full, or so many were read. */
async function searchRefills(
  store: RefillListStore,
  account: RefilledAccount,
  { limit, after, search }: RefillRequest & { readonly search: string },
): Promise<Page<RefillLogDocument>> {
  const wanted = search.toLowerCase();
  const has = (text: string | undefined): boolean => text?.toLowerCase().includes(wanted) === true;
  const found: RefillLogDocument[] = [];
  let last = after;
  for (let read = 0; read < maxRead; read += readTogether) {
    const rows = await store.readBefore(account, last, readTogether);
    found.push(...rows.filter(({ note, code }) => has(note) || has(code)));
    if (found.length > limit || rows.length < readTogether) return toPage(found, limit, placeOf);
    last = rows.at(-1)!.ordinal;
  }
  return { rows: found, hasMore: true, lastId: String(last) };
}

/**
 * Lists the refills of an account, newest first.
 * @throws AppError `invalid_api_key` if there is no such account
 */
export async function listRefills(
  { ledger, redis, hotAccounts }: Pick<AdminDeps, 'ledger' | 'redis' | 'hotAccounts'>,
  accountId: string,
  { limit, after, search = null }: RefillRequest,
): Promise<Page<RefillLogDocument>> {
  const account = await hotAccounts.get(accountId);
  const store = new RefillListStore(ledger, redis);
  if (search !== null) return await searchRefills(store, account, { limit, after, search });
  const found = await store.readBefore(account, after, limit + 1);
  return toPage(found, limit, placeOf);
}
