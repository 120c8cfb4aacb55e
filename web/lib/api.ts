import createClient, { type FetchResponse } from 'openapi-fetch';
import type { paths } from '../generated/api.d.ts';
import { readSelectedAccount } from './selected-account.ts';
import { ApiError } from './api-error.ts';
import { fetchOrThrow } from './fetch-or-throw.ts';
import { freshenSession, readCsrfToken, readSession, refreshSession } from './session.ts';

const safeMethods: readonly string[] = ['GET', 'HEAD'];

/** Operations of an API key that a session may use, too: it says for which account. */
const isForAccount = (url: string): boolean => {
  const { pathname } = new URL(url);
  return pathname.startsWith('/v1/') && !pathname.startsWith('/v1/web/');
};

/** Adds what a call of the session needs: its token, and the account that it is for. */
export async function addSession(request: Request): Promise<void> {
  if (readSession().status === 'none') return;
  await freshenSession();
  if (!safeMethods.includes(request.method)) {
    const token = await readCsrfToken();
    if (token !== null) request.headers.set('x-csrf-token', token);
  }
  const account = readSelectedAccount();
  if (account !== null && isForAccount(request.url) && !request.headers.has('x-api-account'))
    request.headers.set('x-api-account', String(account));
}

/** Whether the session's cookie has expired. Another 401 is about an API key. */
async function findsNoSession(response: Response): Promise<boolean> {
  if (response.status !== 401 || readSession().status === 'none') return false;
  const body = (await response
    .clone()
    .json()
    .catch(() => null)) as { error?: { code?: string } } | null;
  return body?.error?.code === 'unauthenticated';
}

/**
 * Sends a request with the session and the selected account. If the session has expired, refreshes it once and repeats
 * the request. Use it for streams; other calls go through `api`.
 * @throws ApiError without a response; `AbortError` if the caller aborts
 */
export async function sendRequest(request: Request): Promise<Response> {
  const sentAtMs = Date.now();
  await addSession(request);
  const repeated = request.clone();
  const response = await fetchOrThrow(request);
  if (!(await findsNoSession(response)) || !(await refreshSession(sentAtMs))) return response;
  await addSession(repeated);
  return await fetchOrThrow(repeated);
}

/** The API, typed by its own description: `await call(api.GET('/v1/models'))`. */
export const api = createClient<paths>({ baseUrl: location.origin, fetch: sendRequest });

/** Returns the body of a response. @throws ApiError for any other than a success */
export async function call<
  T extends Record<string | number, unknown>,
  Options,
  Media extends `${string}/${string}`,
>(
  response: Promise<FetchResponse<T, Options, Media>>,
): Promise<NonNullable<FetchResponse<T, Options, Media>['data']>> {
  const { data, error, response: raw } = await response;
  if (!raw.ok) throw ApiError.ofResponse(raw, error);
  return data as NonNullable<typeof data>;
}
