import type { KeyHolder } from '../../../shared/accounts/api-key-store.ts';
import { unknownKey } from '../../../shared/accounts/unknown-key.ts';
import type { ApiContext } from './context.ts';

/** Returns the caller's account id and the hash of its API key. @throws AppError `invalid_api_key` without a key */
export function keyHolderOf(context: ApiContext): KeyHolder {
  const { holder } = context.state;
  if (holder === undefined) throw unknownKey();
  return holder;
}
