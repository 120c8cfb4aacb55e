import type { ApiAccount } from '../../lib/accounts.ts';
import { api, call } from '../../lib/api.ts';

/** The models of the gateway. */
export const modelsQuery = {
  queryKey: ['models', 'list'],
  queryFn: async ({ signal }: { readonly signal: AbortSignal }) =>
    (await call(api.GET('/v1/models', { signal }))).data ?? [],
};

/** Whether a list of models, of the operator or of the owner, has a model. Without a list, all are allowed. */
export const isAllowed = (models: readonly string[] | null | undefined, id: string): boolean =>
  models === null || models === undefined || models.includes(id);

/** Whether both the operator and the owner of an account allow a model. */
export const mayUse = ({ models, limits }: ApiAccount, id: string): boolean =>
  isAllowed(models, id) && isAllowed(limits?.models, id);
