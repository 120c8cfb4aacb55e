import { readAdmin } from './admin.ts';
import type { TestStack } from './stack.ts';
import { waitFor } from './wait-for.ts';

/** `ADMIN_TOKEN` of test stacks that have one. */
export const testAdminToken = 'admin-token-of-a-test-0123456789abcdef';

export interface AdminResponse<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

type Body = Record<string, unknown>;

/** Calls the admin API with a token, or with none. */
export async function callAdmin<T = Body>(
  url: string,
  token: string | null,
  method: string,
  path: string,
  body?: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<AdminResponse<T>> {
  const response = await fetch(`${url}/v1/admin${path}`, {
    method,
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: (text === '' ? null : JSON.parse(text)) as T,
  };
}

export const codeOf = ({ body }: AdminResponse<unknown>): string =>
  (body as { error: { code: string } }).error.code;

/** Creates a token by command, and waits until the api knows it. */
export async function createToken(
  { env, url }: Pick<TestStack, 'env' | 'url'>,
  name: string,
  scope: 'read' | 'billing' | 'all',
): Promise<string> {
  const { token } = await readAdmin<{ token: string }>(env, 'token', 'create', name, '--scope', scope);
  await waitFor(
    'the api to know the token',
    async () => (await callAdmin(url, token, 'GET', '/audit?limit=1')).status === 200,
  );
  return token;
}

export interface ListedPage<T> {
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly last_id: string | null;
}

/** Reads all pages of a list. @param path with its query, if it has one */
export async function readAllPages<T>(url: string, token: string, path: string, limit: number): Promise<T[]> {
  const rows: T[] = [];
  for (let after = ''; ;) {
    const query = `${path.includes('?') ? '&' : '?'}limit=${limit}${after}`;
    const { body } = await callAdmin<ListedPage<T>>(url, token, 'GET', `${path}${query}`);
    rows.push(...body.data);
    if (!body.has_more) return rows;
    after = `&after=${encodeURIComponent(body.last_id!)}`;
  }
}
