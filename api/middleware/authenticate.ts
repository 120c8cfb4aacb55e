import { isApiKey } from '../../shared/accounts/credentials.ts';
import { unknownKey } from '../../shared/accounts/unknown-key.ts';
import { AppError } from '../../shared/contract/errors.ts';
import type { KeyHolder } from '../../shared/accounts/api-key-store.ts';
import type { Services } from '../services.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiContext, ApiMiddleware } from './request-context.ts';

/** What stands between the blanks is not empty: else the blanks of a long header could be shared out in too many ways. */
const bearer = /^Bearer(?: +(\S+))? *$/i;

const howToSend = 'Send it as "Authorization: Bearer <API_KEY>".';

/** Finds whose API key the request carries. Whether the account may do anything is admission's to say. */
export function authenticate({ apiKeys }: Pick<Services, 'apiKeys'>): ApiMiddleware {
  return async (context, next) => {
    // What a key opens is nobody else's: neither it nor a refusal is for a cache.
    context.set('cache-control', 'no-store');
    const key = readKey(context.get('authorization'));
    const holder = await apiKeys.find(key, () => callerNetwork(context.ip));
    if (holder === null) throw refuseKey(key);
    context.state.holder = holder;
    await next();
  };
}

/** @throws AppError `invalid_api_key`; what was sent is not repeated, as it may be a key all the same */
function readKey(authorization: string): string {
  if (authorization === '') throw noKey(`The request has no API key. ${howToSend}`);
  const match = bearer.exec(authorization);
  if (match === null) {
    throw noKey(`The Authorization header is not of the form "Bearer <API_KEY>". ${howToSend}`);
  }
  const key = match[1] ?? '';
  if (key === '') {
    throw noKey(
      'The API key is empty: there is nothing behind "Bearer". Check where the client takes it from.',
    );
  }
  return key;
}

/** Where no key was sent, nothing is said of one (RFC 6750, 3.1). */
const noKey = (message: string): AppError =>
  new AppError('invalid_api_key', {
    message,
    headers: { 'www-authenticate': 'Bearer realm="model-gateway"' },
  });

function refuseKey(key: string): AppError {
  if (isApiKey(key)) return unknownKey();
  return new AppError('invalid_api_key', {
    message:
      'This is no API key of this gateway: those are "mg-" and 43 characters. Check which key the client sends.',
  });
}

export function holderOf(context: ApiContext): KeyHolder {
  const { holder } = context.state;
  if (holder === undefined) throw unknownKey();
  return holder;
}
