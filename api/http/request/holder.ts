import type { SessionAccess } from '../../account-area/session-accounts.ts';
import type { KeyHolder } from '../../../shared/accounts/api-key-store.ts';
import { unknownKey } from '../../../shared/accounts/unknown-key.ts';
import type { ApiContext } from './context.ts';

/** A call with a session, for an account that the session's user has linked. */
export interface SessionHolder {
  readonly accountId: string;
  readonly keyHash: null;
  readonly access: SessionAccess;
}

/** The account that a call acts for, and what proves that it may: the account's key or a session. */
export type AccountHolder = KeyHolder | SessionHolder;

/** Returns whom the call acts for. @throws AppError `invalid_api_key` if that was not determined */
export function holderOf(context: ApiContext): AccountHolder {
  const { holder } = context.state;
  if (holder === undefined) throw unknownKey();
  return holder;
}

/** Like `holderOf`, for an operation that takes only keys. @throws AppError `invalid_api_key` */
export function keyHolderOf(context: ApiContext): KeyHolder {
  const holder = holderOf(context);
  if (holder.keyHash === null) throw unknownKey();
  return holder;
}
