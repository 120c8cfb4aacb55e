import type { KeyHolder } from '../../../shared/accounts/api-key-store.ts';
import { isApiKey } from '../../../shared/accounts/credentials.ts';
import { unknownKey } from '../../../shared/accounts/unknown-key.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { accountHeader, type Operation } from '../../../shared/contract/operation.ts';
import { callerNetwork } from '../callers/caller-network.ts';
import type { Services } from '../../services.ts';
import type { ApiContext } from './context.ts';
import { readCookie } from './session-cookies.ts';

/** `\S+`, not `\S*`: otherwise a long run of blanks would cause slow backtracking. */
const bearer = /^Bearer(?: +(\S+))? *$/i;

const howToSend = 'Send it as "Authorization: Bearer <API_KEY>".';

/**
 * Finds the holder of the request's API key.
 * @throws AppError `invalid_api_key`, without repeating what was sent, as it may be a valid key; `service_unavailable`
 */
export async function findKeyHolder(
  services: Pick<Services, 'apiKeys' | 'config'>,
  context: ApiContext,
  operation: Operation,
): Promise<KeyHolder> {
  const authorization = context.get('authorization');
  if (authorization === '')
    throw noKey(`The request has no API key. ${adviseCaller(services, context, operation)}`);
  const key = readKey(authorization);
  const holder = await services.apiKeys.find(key, () => callerNetwork(context.ip));
  if (holder === null) throw invalidKey(key);
  return holder;
}

function readKey(authorization: string): string {
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

/** Says how to send a key and, if the request has a session, what to do with that. */
function adviseCaller(
  { config }: Pick<Services, 'config'>,
  context: ApiContext,
  { sessionTwin }: Operation,
): string {
  const hasSession = (['session', 'refresh'] as const).some(
    (one) => readCookie(context, config, one) !== null,
  );
  if (!hasSession) return howToSend;
  return sessionTwin === undefined
    ? `${howToSend} To use your session instead, send the id of one of your accounts as ${accountHeader}; ` +
        'GET /v1/web/api-accounts lists them.'
    : `${howToSend} With a session, use ${sessionTwin} instead.`;
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
