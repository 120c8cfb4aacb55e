import { useEffect, useRef } from 'preact/hooks';
import { switchAccount, type ApiAccount } from '../../lib/accounts.ts';
import { useAddressFilters } from '../../lib/address-filters.ts';

/**
 * Keeps the account in the address and the chosen one the same, whichever of the two changes. The address wins when the
 * page is opened, so that a link shows the account that it was copied from.
 */
export function useAccountInAddress(accounts: readonly ApiAccount[], selected: ApiAccount): void {
  const [params, change] = useAddressFilters();
  const named = params.get('account');
  const linked = accounts.find(({ id }) => String(id) === named) ?? null;
  const chosenBefore = useRef(selected.id);
  useEffect(() => {
    const hasChosen = chosenBefore.current !== selected.id;
    chosenBefore.current = selected.id;
    if (String(selected.id) === named) return;
    if (linked === null || hasChosen) {
      // One account needs no name.
      const name = accounts.length > 1 ? String(selected.id) : null;
      if (name !== named) change({ account: name, ...(hasChosen ? { page: null, request: null } : {}) });
    } else switchAccount(linked.id);
  }, [accounts, selected.id, named]);
}
