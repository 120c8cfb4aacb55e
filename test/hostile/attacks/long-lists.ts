import { request } from 'node:http';
import type { Target } from './target.ts';

/** A request for which the server must read this text. */
export interface ListRequest {
  readonly method: 'GET' | 'POST' | 'OPTIONS';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

const get = (headers: Readonly<Record<string, string>>, path = '/v1/models'): ListRequest => ({
  method: 'GET',
  path,
  headers,
});
const repeat = (unit: string, size: number): string => unit.repeat(Math.floor(size / unit.length));

/** Requests whose queries, paths or headers have this many characters and many tiny items. */
export const longLists: Readonly<Record<string, (size: number) => ListRequest>> = {
  'parameters of an operation with a query': (size) => get({}, `/v1/models?${repeat('a&', size)}`),
  'different parameters': (size) =>
    get({}, `/v1/models?${Array.from({ length: size / 6 }, (_, i) => `a${i}`).join('&')}`.slice(0, size)),
  'escaped parameters': (size) => get({}, `/v1/models?a=${repeat('%41', size)}`),
  'parameters of an operation without a query': (size) => get({}, `/v1/servers?${repeat('a&', size)}`),
  'escapes of a path': (size) => get({}, `/v1/models/${repeat('%2541', size)}`),
  'segments of a path': (size) => get({}, `/v1/models/${repeat('a/', size)}`),
  'segments of an unknown path': (size) => get({}, `/v1/engines/${repeat('a/', size)}`),
  dots: (size) => get({}, `/v1/${repeat('../', size)}`),
  cookies: (size) => get({ cookie: repeat('a=b; ', size) }, '/v1/web/users/me'),
  'blanks between cookies': (size) => get({ cookie: `;${repeat(' ', size)}x` }, '/v1/web/users/me'),
  'cookies of a session': (size) => get({ cookie: repeat('mg_session=; ', size) }, '/v1/web/users/me'),
  'accepted types': (size) => get({ accept: repeat('a/b;q=0.1,', size) }),
  'accepted codings': (size) => get({ 'accept-encoding': repeat('x;q=0.1,', size) }),
  'accepted languages': (size) => get({ 'accept-language': repeat('ru;q=0.1,', size) }, '/v1/web/config'),
  tags: (size) => get({ 'if-none-match': repeat('"a",', size) }),
  'cache directives': (size) => get({ 'if-none-match': '"a"', 'cache-control': repeat('no-cach, ', size) }),
  preferences: (size) => ({
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { prefer: `"${repeat('\\"', size)}\\`, authorization: 'Bearer API_KEY' },
  }),
  'parameters of a content type': (size) => ({
    method: 'POST',
    path: '/v1/web/auth/code',
    headers: { 'content-type': `application/json${repeat('; a="\\"', size)}`, 'content-length': '0' },
  }),
  'blanks of a content type': (size) => ({
    method: 'POST',
    path: '/v1/web/auth/code',
    headers: { 'content-type': `application/json;${repeat(' ', size)}x`, 'content-length': '0' },
  }),
  'requested headers of a preflight': (size) => ({
    method: 'OPTIONS',
    path: '/v1/models',
    headers: {
      origin: 'https://page.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': repeat('a,', size),
    },
  }),
  origins: (size) => ({
    method: 'POST',
    path: '/v1/web/auth/code',
    headers: { origin: `http://${repeat('a.', size)}`, 'content-length': '0' },
  }),
  'forwarded addresses': (size) => get({ 'x-forwarded-for': repeat('1.2.3.4, ', size) }),
};

/**
 * @param target its key is that of an account without money
 * @returns the status of the response, which is read to its end
 */
export async function sendList(
  { url, apiKey }: Pick<Target, 'url'> & { readonly apiKey: string },
  { method, path, headers: given }: ListRequest,
): Promise<number> {
  const headers =
    given['authorization'] === undefined ? given : { ...given, authorization: `Bearer ${apiKey}` };
  return await new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, { method, headers }, (response) => {
      response.on('end', () => resolve(response.statusCode!));
      response.on('error', reject);
      response.resume();
    });
    sent.on('error', reject);
    sent.end();
  });
}
