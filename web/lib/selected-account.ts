import { keep, readKept } from './kept.ts';
import { createStore } from './store.ts';

const name = 'account';

const readId = (): number | null => {
  const id = Number(readKept(name) ?? Number.NaN);
  return Number.isSafeInteger(id) ? id : null;
};

/** The account that the pages show, as `id` of `/v1/web/api-accounts`. Null until one is known. */
export const selectedAccount = createStore<number | null>(readId());

export const readSelectedAccount = (): number | null => selectedAccount.get();

export function selectAccount(id: number | null): void {
  keep(name, id === null ? null : String(id));
  selectedAccount.set(id);
}
