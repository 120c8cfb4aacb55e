import { isApiKey } from '../../../shared/accounts/credentials.ts';
import { unknownKey } from '../../../shared/accounts/unknown-key.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import type { ApiMiddleware } from '../request/context.ts';
import type { Services } from '../../services.ts';

/** `\S+`, not `\S*`: otherwise a long run of blanks would cause slow backtracking. */
const bearer = /^Bearer(?: +(\S+))? *$/i;

const howToSend = 'Send it as "Authorization: Bearer <API_KEY>".';

/** Finds the holder of the request's API key. Whether its account may make the call is checked at admission. */
export function authenticate({ apiKeys }: Pick<Services, 'apiKeys'>): ApiMiddleware {
  return async (context, next) => {
    // Neither responses nor errors of authenticated calls may be cached.
    context.set('cache-control', 'no-store');
    const key = readKey(context.get('authorization'));
    const holder = await apiKeys.find(key, () => callerNetwork(context.ip));
    if (holder === null) throw invalidKey(key);
    context.state.holder = holder;
    await next();
  };
}

/** @throws AppError `invalid_api_key`, without repeating what was sent, as it may be a valid key */
function readKey(authorization: string): string {
  if (authorization === '') throw noKey(`The request has no API key. ${howToSend}`);
  const match = bearer.exec(authorization);
  if (match === null) {
    throw noKey(`The Authorization header does not have the form "Bearer <API_KEY>". ${howToSend}`);
  }
  const key = match[1] ?? '';
  if (key === '') {
    throw noKey(
      'The API key is empty: nothing follows "Bearer". Check where your client reads the key from.',
    );
  }
  return key;
}

/** Without a key, the challenge must not contain an error (RFC 6750, 3.1). */
const noKey = (message: string): AppError =>
  new AppError('invalid_api_key', {
    message,
    headers: { 'www-authenticate': 'Bearer realm="model-gateway"' },
  });

function invalidKey(key: string): AppError {
  if (isApiKey(key)) return unknownKey();
  return new AppError('invalid_api_key', {
    message:
      'This is not an API key of this gateway: its keys are "mg-" followed by 43 characters. Check which key your client sends.',
  });
}
