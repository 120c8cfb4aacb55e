import test, { type ExecutionContext } from 'ava';
import { startOtherApi } from '../../support/other-api.ts';
import { openRaw } from '../../support/raw-caller.ts';
import { readErrorCode } from '../../support/read-error.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { WebClient } from '../../support/web-client.ts';
import { createEmail, signIn } from '../../support/web-sign-in.ts';

/** Session cookies and accepted origins, which depend on the service's public address. */

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ workers: [], env: { WEB_CAPTCHA: 'off' } });
});
test.after.always(() => stack?.close());

const publicUrl = 'https://gateway.example';
const startHttps = (t: ExecutionContext, env: Readonly<Record<string, string>> = {}): Promise<string> =>
  startOtherApi(t, stack, { PUBLIC_URL: publicUrl, ...env });

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

interface Expected {
  /** Prefix of the cookie names `mg_session` and `mg_refresh`. */
  readonly prefix?: string;
  readonly attributes?: string;
  readonly refreshLifeMs: number;
}

/** Makes a call that sets cookies and checks them exactly; an expiry may differ by the duration of the call. */
async function checkCookies(
  t: ExecutionContext,
  send: () => Promise<Response>,
  { prefix = '', attributes = 'samesite=lax; httponly', refreshLifeMs }: Expected,
): Promise<void> {
  const before = Date.now();
  const response = await send();
  const after = Date.now();
  t.is(response.status, 200);
  const cookies = response.headers.getSetCookie();
  t.is(cookies.length, 2);
  const lives = { mg_session: 15 * minuteMs, mg_refresh: refreshLifeMs };
  for (const [i, [name, lifeMs]] of Object.entries(lives).entries()) {
    const [, value, expires, rest] =
      /^([^;]+); path=\/; expires=([^;]+); (.*)$/.exec(cookies[i]!) ?? t.fail(cookies[i]) ?? [];
    t.regex(value!, new RegExp(`^${prefix}${name}=[A-Za-z0-9_-]{86}$`));
    t.is(rest, attributes);
    const endsAt = Date.parse(expires!);
    // The header has whole seconds, rounded down.
    t.true(endsAt > before + lifeMs - 1_000 && endsAt <= after + lifeMs, `${name}: ${expires}`);
  }
}

test('a session has two host-only cookies: one is valid for 15 minutes, and one refreshes the session for 24 hours', async (t) => {
  const client = new WebClient(stack.url);
  await checkCookies(t, () => signIn(stack, client, createEmail()), { refreshLifeMs: 24 * hourMs });
  const refresh = () => client.request('POST', '/auth/refresh');
  await checkCookies(t, refresh, { refreshLifeMs: 24 * hourMs });
});

test('a remembered session can be refreshed for 30 days, and each refresh extends it by another 30', async (t) => {
  const client = new WebClient(stack.url);
  const signInRemembered = () => signIn(stack, client, createEmail(), { rememberMe: true });
  await checkCookies(t, signInRemembered, { refreshLifeMs: 30 * 24 * hourMs });
  await checkCookies(t, () => client.request('POST', '/auth/refresh'), { refreshLifeMs: 30 * 24 * hourMs });
});

test('over https the cookies are Secure and bound to the host, and cookies with other names are ignored', async (t) => {
  const client = new WebClient(await startHttps(t));
  const expected = {
    prefix: '__Host-',
    attributes: 'samesite=lax; secure; httponly',
    refreshLifeMs: 24 * hourMs,
  };
  await checkCookies(t, () => signIn(stack, client, createEmail()), expected);
  const refresh = async (): Promise<Response> => {
    const response = await client.request('POST', '/auth/refresh');
    await client.keepResult(response.clone());
    return response;
  };
  await checkCookies(t, refresh, expected);
  t.is((await client.request('GET', '/auth/me')).status, 200);

  const plain = new WebClient(client.url);
  for (const [name, value] of client.cookies) plain.cookies.set(name.replace('__Host-', ''), value);
  t.is(await readErrorCode(await plain.request('GET', '/auth/me'), 401), 'unauthenticated');
  t.is(await readErrorCode(await plain.request('POST', '/auth/refresh'), 401), 'unauthenticated');

  const cleared = (name: string): string =>
    `__Host-${name}=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; samesite=lax; secure; httponly`;
  const response = await client.request('POST', '/auth/logout');
  t.deepEqual(response.headers.getSetCookie(), [cleared('mg_session'), cleared('mg_refresh')]);
});

test('pages from all public addresses of the service are accepted, and with a public address the Host header is ignored', async (t) => {
  const url = await startHttps(t, {
    BACKUP_URL: 'https://backup.example:8443/',
    DIRECT_URL: 'http://192.0.2.1/',
  });
  const refreshFrom = (origin: string): Promise<Response> =>
    new WebClient(url).request('POST', '/auth/refresh', undefined, { origin });
  for (const ownOrigin of [publicUrl, 'https://backup.example:8443', 'http://192.0.2.1']) {
    t.is(await readErrorCode(await refreshFrom(ownOrigin), 401), 'unauthenticated', ownOrigin);
  }
  const foreignOrigins = [
    'http://gateway.example',
    `${publicUrl}:8443`,
    'https://backup.example',
    url,
    'null',
  ];
  for (const origin of foreignOrigins)
    t.is(await readErrorCode(await refreshFrom(origin), 403), 'origin_refused', origin);
});

test('without a public address, the Host header is trusted only if it is a name that nobody else can own', async (t) => {
  const refreshAt = async (host: string): Promise<[number, string]> => {
    const caller = await openRaw(stack.url);
    caller.socket.write(
      `POST /v1/web/auth/refresh HTTP/1.1\r\nhost: ${host}\r\norigin: http://${host}\r\n` +
        'content-length: 0\r\nconnection: close\r\n\r\n',
    );
    const [response] = await caller.responses();
    const { error } = JSON.parse(response!.body) as { error: { code: string } };
    return [response!.status, error.code];
  };
  for (const ownHost of ['localhost:8080', 'app.localhost', '192.0.2.7:8080', '[2001:db8::1]:8080'])
    t.deepEqual(await refreshAt(ownHost), [401, 'unauthenticated'], ownHost);
  for (const rebound of ['evil.example', 'localhost.evil.example:8080', '192.0.2.7.evil.example', 'gateway'])
    t.deepEqual(await refreshAt(rebound), [403, 'origin_refused'], rebound);
});

test('a page from another origin cannot read with a session, even if other origins may call the API', async (t) => {
  const url = await startOtherApi(t, stack, { CORS_ORIGINS: '*' });
  const client = new WebClient(url);
  await signIn(stack, client, createEmail());
  const response = await client.request('GET', '/auth/me', undefined, { origin: 'https://evil.example' });
  t.is(response.headers.get('access-control-allow-credentials'), null);
  const changed = await client.request('PATCH', '/auth/me', { timezone: 'UTC' }, { origin: publicUrl });
  t.is(await readErrorCode(changed, 403), 'origin_refused');
});
