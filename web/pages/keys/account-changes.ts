import type { operations } from '../../generated/api.d.ts';
import { accountsKey, type ApiAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';
import { queryClient } from '../../lib/queries.ts';

/** What the owner of an account may change. */
export type AccountChange = operations['renameApiAccount']['requestBody']['content']['application/json'];

function update(change: (accounts: readonly ApiAccount[]) => readonly ApiAccount[]): void {
  queryClient.setQueryData<readonly ApiAccount[]>(accountsKey, (accounts) => change(accounts ?? []));
}

/** Shows an account that a call returned, whether it is new or has changed. */
export function noteAccount(account: ApiAccount): void {
  update((accounts) =>
    accounts.some(({ id }) => id === account.id)
      ? accounts.map((one) => (one.id === account.id ? account : one))
      : [...accounts, account],
  );
}

/** Shows what has changed about an account without reading it again. */
export function noteChange(id: number, change: Partial<ApiAccount>): void {
  update((accounts) => accounts.map((one) => (one.id === id ? { ...one, ...change } : one)));
}

export const forgetAccount = (id: number): void =>
  update((accounts) => accounts.filter((account) => account.id !== id));

/** Changes the name or the owner's limits of an account. @throws ApiError */
export async function changeAccount(id: number, body: AccountChange): Promise<void> {
  const params = { path: { account_id: id } };
  noteAccount(await call(api.PATCH('/v1/web/api-accounts/{account_id}', { params, body })));
}
