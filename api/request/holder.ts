import type { KeyHolder } from '../../shared/accounts/api-key-store.ts';
import { unknownKey } from '../../shared/accounts/unknown-key.ts';
import type { ApiContext } from './context.ts';

/** Returns the holder of the request's API key. @throws AppError `invalid_api_key` if there is none */
export function holderOf(context: ApiContext): KeyHolder {
  const { holder } = context.state;
  if (holder === undefined) throw unknownKey();
  return holder;
}
