import { within } from '../platform/runtime/within.ts';
import { AppError } from '../contract/errors.ts';
import type { AdminDeps } from './admin-deps.ts';

/** A list without names is better than one that is late. */
const maxReadMs = 1_000;

/** The names of accounts by their ids, with one read for all. Empty while MongoDB does not respond. */
export async function readAccountNames(
  { accounts }: Pick<AdminDeps, 'accounts'>,
  ids: readonly (string | null)[],
): Promise<ReadonlyMap<string, string>> {
  const wanted = [...new Set(ids.filter((id) => id !== null))];
  if (wanted.length === 0) return new Map();
  try {
    return await within(maxReadMs, accounts.findNames(wanted), () => new Map<string, string>());
  } catch (error) {
    if (error instanceof AppError && error.code === 'service_unavailable') return new Map();
    throw error;
  }
}

/** Adds the names of their accounts to rows. @param idOf the id of a row's account; null for none */
export async function addAccountNames<T extends object>(
  deps: Pick<AdminDeps, 'accounts'>,
  rows: readonly T[],
  idOf: (row: T) => string | null,
): Promise<(T & { readonly account_name: string | null })[]> {
  const names = await readAccountNames(deps, rows.map(idOf));
  return rows.map((row) => ({ ...row, account_name: names.get(idOf(row) ?? '') ?? null }));
}
