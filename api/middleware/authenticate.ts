import { AppError } from '../../shared/contract/errors.ts';
import type { KeyHolder } from '../../shared/accounts/api-key-store.ts';
import type { Services } from '../services.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';

const bearer = /^Bearer +(\S+) *$/i;

/** Finds whose API key the request carries. Whether the account may do anything is admission's to say. */
export function authenticate({ apiKeys }: Services): ApiMiddleware {
  return async (context, next) => {
    const key = bearer.exec(context.get('authorization'))?.[1];
    if (key === undefined) throw new AppError('invalid_api_key');
    const holder = await apiKeys.find(key);
    if (holder === null) throw new AppError('invalid_api_key');
    context.state.holder = holder;
    await next();
  };
}

export function holderOf(context: ApiContext): KeyHolder {
  const { holder } = context.state;
  if (holder === undefined) throw new AppError('invalid_api_key');
  return holder;
}
