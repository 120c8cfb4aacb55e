import type { ApiAccount } from './accounts.ts';

/** Whether a list of models, of the operator or of the owner, has a model. Without a list, all are allowed. */
export const isAllowed = (models: readonly string[] | null | undefined, id: string): boolean =>
  models === null || models === undefined || models.includes(id);

/** Whether both the operator and the owner of an account allow a model. */
export const mayUse = ({ models, limits }: ApiAccount, id: string): boolean =>
  isAllowed(models, id) && isAllowed(limits?.models, id);
