import { refreshAccounts } from '../../lib/accounts.ts';
import { queryClient } from '../../lib/queries.ts';

/** After a batch was created or cancelled. */
export const refreshLists = (): Promise<unknown> =>
  Promise.all([queryClient.invalidateQueries({ queryKey: ['batches'] }), refreshAccounts()]);
