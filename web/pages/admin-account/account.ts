import { useQuery } from '@tanstack/preact-query';
import { shortId } from '../../admin/links.tsx';
import { adminApi, call, type Schema } from '../../admin/api.ts';

/** An account with the user who has linked it. */
export type Account = Schema<'AdminAccountDetails'>;

/** @throws ApiError */
export const readAccount = (id: string, signal?: AbortSignal): Promise<Account> =>
  call(
    adminApi.GET('/v1/admin/accounts/{account_id}', {
      params: { path: { account_id: id } },
      ...(signal === undefined ? {} : { signal }),
    }),
  );

export const useAccount = (id: string) =>
  useQuery({ queryKey: ['account', id], queryFn: ({ signal }) => readAccount(id, signal) });

/** What it is called: by operators, by the address of its owner, or by its id. */
export const nameOf = ({ name, email, user_email: user, id }: Account): string =>
  name ?? email ?? user ?? shortId(id);
