import { useQuery } from '@tanstack/preact-query';
import { useEffect } from 'preact/hooks';
import type { components } from '../generated/api.d.ts';
import { api, call } from './api.ts';
import { askToLeave } from './leave-guard.ts';
import { queryClient } from './queries.ts';
import { selectAccount, selectedAccount } from './selected-account.ts';
import { useSession } from './session.ts';
import { useStore } from './store.ts';

export type ApiAccount = components['schemas']['ApiAccount'];

export const accountsKey = ['accounts'] as const;

/** The user's accounts, and the one that the pages show. */
export function useAccounts() {
  const { status } = useSession();
  const query = useQuery({
    queryKey: accountsKey,
    queryFn: ({ signal }) => call(api.GET('/v1/web/api-accounts', { signal })),
    enabled: status !== 'none',
  });
  const id = useStore(selectedAccount);
  const accounts = query.data ?? null;
  const selected =
    accounts?.find((account) => account.id === id) ??
    accounts?.find((account) => account.is_primary) ??
    accounts?.[0] ??
    null;
  const selectedId = selected?.id ?? null;
  useEffect(() => {
    // The kept one belongs to somebody else, or was unlinked.
    if (accounts !== null && selectedId !== id) selectAccount(selectedId);
  }, [accounts, selectedId, id]);
  return { query, accounts, selected };
}

/** Shows another account: everything that was read of the previous one is read again. */
export function switchAccount(id: number): void {
  askToLeave(() => {
    selectAccount(id);
    queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== accountsKey[0] });
  });
}

/** Reads balances again, such as after a request that costs something. */
export const refreshAccounts = (): Promise<void> => queryClient.invalidateQueries({ queryKey: accountsKey });
