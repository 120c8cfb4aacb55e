import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Session } from '../../../api/contract/web-sessions.ts';
import { exhaustLimit } from '../../support/provoke-errors.ts';
import { readErrorCode } from '../../support/read-error.ts';
import { startOtherApi } from '../../support/other-api.ts';
import type { TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebStack } from '../../support/web-accounts.ts';
import { createWebUser, WebClient, webStoresOf } from '../../support/web-client.ts';
import { createEmail, signIn, from } from '../../support/web-sign-in.ts';

/** Listing, ending and refreshing sessions. */

let stack: TestStack;
test.before(async () => {
  stack = await startWebStack({ mail: true });
});
test.after.always(() => stack?.close());

const windows =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36';
const iphone =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1';

async function listSessions(client: WebClient): Promise<Session[]> {
  return (await (await client.request('GET', '/auth/sessions')).json()) as Session[];
}

const isOpen = async (client: WebClient): Promise<boolean> =>
  (await client.request('GET', '/auth/me')).status === 200;

/** A copy of everything that a browser stores, as an attacker would have it. */
function copyOf(client: WebClient): WebClient {
  const copy = new WebClient(client.url);
  for (const [name, value] of client.cookies) copy.cookies.set(name, value);
  copy.csrfToken = client.csrfToken;
  return copy;
}

/** Sessions of one user, each in its own browser. */
const createSessions = async (count: number) => {
  const email = createEmail();
  return await Promise.all(Array.from({ length: count }, () => createWebUser(stack, email)));
};

test('a session is shown with its device, addresses and times, and whether it is the current one', async (t) => {
  const email = createEmail();
  const desktop = new WebClient(stack.url, { userAgent: windows, headers: from('198.51.100.7') });
  const phone = new WebClient(stack.url, { userAgent: iphone, headers: from('2001:db8::7') });
  await signIn(stack, desktop, email);
  await signIn(stack, phone, email, { rememberMe: true });
  const [last, first, ...more] = await listSessions(phone);
  t.deepEqual(more, []);
  t.like(first, {
    current: false,
    remember_me: false,
    os_name: 'Windows',
    browser_name: 'Chrome',
    device_type: 'desktop',
    ip_created: '198.51.100.7',
    ip_last_used: '198.51.100.7',
  });
  t.like(last, {
    current: true,
    remember_me: true,
    os_name: 'iOS',
    browser_name: 'Safari',
    device_type: 'mobile',
    ip_created: '2001:db8::7',
    ip_last_used: '2001:db8::7',
  });
  const hoursOf = ({ created_at, expires_at }: Session): number =>
    (Date.parse(expires_at) - Date.parse(created_at)) / 3_600_000;
  t.is(hoursOf(first!), 24);
  t.is(hoursOf(last!), 30 * 24);
  t.deepEqual(
    (await listSessions(desktop)).map(({ id, current }) => ({ id, current })),
    [
      { id: last!.id, current: false },
      { id: first!.id, current: true },
    ],
  );
});

test('a session shows the address of its last use', async (t) => {
  const { client, sessionId } = await createWebUser(stack, createEmail());
  const documents = stack.mongo.db.collection<{ _id: string; lastUsedAt: Date }>('web_sessions');
  const longAgo = new Date(Date.now() - 61_000);
  await documents.updateOne({ _id: sessionId }, { $set: { lastUsedAt: longAgo } });
  await client.request('GET', '/auth/me', undefined, from('203.0.113.77'));
  // Listing the sessions would be another use of the session, from another address.
  await waitFor('the use to be recorded', async () => {
    const document = await documents.findOne({ _id: sessionId });
    return document!.lastUsedAt > longAgo;
  });
  const [session] = await listSessions(client);
  t.is(session!.ip_last_used, '203.0.113.77');
  t.is(session!.ip_created, '127.0.0.1');
});

test('a revoked session is invalid from the next request on, at every api process', async (t) => {
  const otherUrl = await startOtherApi(t, stack);
  const [{ client: mine }, { client: lost, sessionId }] = (await createSessions(2)) as [
    CreatedUser,
    CreatedUser,
  ];
  const lostAtOtherApi = Object.assign(copyOf(lost), { url: otherUrl });
  t.true(await isOpen(lostAtOtherApi));
  const revoked = await mine.request('DELETE', `/auth/sessions/${sessionId}`);
  t.is(revoked.status, 204);
  t.deepEqual(revoked.headers.getSetCookie(), [], 'the current session remains');
  t.false(await isOpen(lostAtOtherApi));
  t.false(await isOpen(lost));
  t.is((await lost.request('POST', '/auth/refresh')).status, 401);
  t.is((await listSessions(mine)).length, 1);
  t.is((await mine.request('DELETE', `/auth/sessions/${sessionId}`)).status, 404);
});

type CreatedUser = Awaited<ReturnType<typeof createWebUser>>;

test('for a session of another user, the response is the same as for one that does not exist', async (t) => {
  const [{ client }, other] = [
    await createWebUser(stack, createEmail()),
    await createWebUser(stack, createEmail()),
  ];
  const theirs = await client.request('DELETE', `/auth/sessions/${other.sessionId}`);
  t.is(await readErrorCode(theirs, 404), 'not_found');
  t.true(await isOpen(other.client));
  const malformed = await client.request('DELETE', '/auth/sessions/1');
  t.is(malformed.status, 422);
  t.like(await malformed.json(), { detail: [{ loc: ['path', 'session_id'] }] });
});

test('signing out, or revoking the current session, ends it and clears the cookies', async (t) => {
  const waysToSignOut: ((created: CreatedUser) => Promise<Response>)[] = [
    ({ client }) => client.request('POST', '/auth/logout'),
    ({ client, sessionId }) => client.request('DELETE', `/auth/sessions/${sessionId}`),
  ];
  for (const signOut of waysToSignOut) {
    const [ended, other] = (await createSessions(2)) as [CreatedUser, CreatedUser];
    const copied = copyOf(ended.client);
    const response = await signOut(ended);
    t.is(response.status, 204);
    checkCleared(t, response);
    t.false(await isOpen(copied), 'copied cookies are invalid');
    t.is((await copied.request('POST', '/auth/refresh')).status, 401);
    t.true(await isOpen(other.client), 'other sessions remain');
  }
});

test('signing out works without a CSRF token after the session cookie has expired', async (t) => {
  const { sessions, audit } = webStoresOf(stack);
  const documents = stack.mongo.db.collection<{ _id: string }>('web_sessions');
  const waysToLoseSession: ((created: CreatedUser) => unknown)[] = [
    ({ client }) => client.cookies.delete('mg_session'),
    ({ sessionId }) => documents.updateOne({ _id: sessionId }, { $set: { accessExpiresAt: new Date(0) } }),
    // A page whose refresh response was lost still has the previous tokens.
    ({ client }) => sessions.refresh(client.cookies.get('mg_refresh')!, '127.0.0.1'),
  ];
  for (const loseSession of waysToLoseSession) {
    const [ended, other] = (await createSessions(2)) as [CreatedUser, CreatedUser];
    await loseSession(ended);
    ended.client.csrfToken = null;
    const copied = copyOf(ended.client);
    const response = await ended.client.request('POST', '/auth/logout', undefined, { origin: stack.url });
    t.is(response.status, 204);
    checkCleared(t, response);
    t.is((await copied.request('POST', '/auth/refresh')).status, 401);
    t.true(await isOpen(other.client), 'other sessions remain');
    t.like(await audit.list(ended.user._id, 10), [{ action: 'signed-out', sessionId: ended.sessionId }]);
  }
});

test('signing out of a session that has ended is a 401 that clears the cookies', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  await webStoresOf(stack).sessions.revokeAll(user._id);
  const rejection = await client.request('POST', '/auth/logout');
  t.is(await readErrorCode(rejection, 401), 'unauthenticated');
  checkCleared(t, rejection);
});

test('a page of another origin cannot sign a user out, and the CSRF token is required if the session cookie is valid', async (t) => {
  const { client } = await createWebUser(stack, createEmail());
  const foreignOrigin = { origin: 'https://evil.example' };
  const withToken = copyOf(client);
  client.csrfToken = null;
  const rejection = await client.request('POST', '/auth/logout');
  t.is(await readErrorCode(rejection, 403), 'csrf_failed');
  t.deepEqual(rejection.headers.getSetCookie(), []);
  client.cookies.delete('mg_session');
  for (const one of [client, withToken]) {
    const forged = await one.request('POST', '/auth/logout', undefined, foreignOrigin);
    t.is(await readErrorCode(forged, 403), 'origin_refused');
    t.deepEqual(forged.headers.getSetCookie(), []);
  }
  t.true(await isOpen(withToken));
});

test('a user can end all sessions, or all but the current one, and sessions of other users are unaffected', async (t) => {
  const [mine, ...others] = (await createSessions(3)) as [CreatedUser, ...CreatedUser[]];
  const otherUser = await createWebUser(stack, createEmail());
  const logoutOthersResponse = await mine.client.request('POST', '/auth/logout-others');
  t.is(logoutOthersResponse.status, 204);
  t.deepEqual(logoutOthersResponse.headers.getSetCookie(), []);
  t.true(await isOpen(mine.client));
  for (const { client } of others) t.false(await isOpen(client));

  const copied = copyOf(mine.client);
  const all = await mine.client.request('POST', '/auth/logout-all');
  t.is(all.status, 204);
  checkCleared(t, all);
  t.false(await isOpen(copied));
  t.true(await isOpen(otherUser.client));
});

function checkCleared(t: ExecutionContext, response: Response): void {
  const cleared = (name: string): string =>
    `${name}=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; samesite=lax; httponly`;
  t.deepEqual(response.headers.getSetCookie(), [cleared('mg_session'), cleared('mg_refresh')]);
}

test('a refresh replaces both cookies and the CSRF token, and the previous ones become invalid', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  const before = copyOf(client);
  // A reloaded page has lost its CSRF token.
  client.csrfToken = null;
  const refreshed = await client.request('POST', '/auth/refresh', undefined, { origin: stack.url });
  t.is(refreshed.status, 200);
  const result = await client.keepResult(refreshed);
  t.is(result.user.id, user._id);
  for (const name of ['mg_session', 'mg_refresh']) t.not(client.cookies.get(name), before.cookies.get(name));
  t.not(result.csrf_token, before.csrfToken);

  t.false(await isOpen(before), 'the previous access cookie');
  t.true(await isOpen(client));
  const change = { timezone: 'Europe/Paris' };
  const oldCsrf = { 'x-csrf-token': before.csrfToken! };
  t.is(await readErrorCode(await client.request('PATCH', '/auth/me', change, oldCsrf), 403), 'csrf_failed');
  t.is((await client.request('PATCH', '/auth/me', change)).status, 200);
});

test('a refresh works after the access cookie has expired, but not without the refresh cookie', async (t) => {
  const { client } = await createWebUser(stack, createEmail());
  const refreshToken = client.cookies.get('mg_refresh')!;
  client.cookies.delete('mg_refresh');
  t.is(await readErrorCode(await client.request('POST', '/auth/refresh'), 401), 'unauthenticated');
  client.cookies.clear();
  for (const invalidToken of ['x', `${refreshToken}x`]) {
    client.cookies.set('mg_refresh', invalidToken);
    const rejection = await client.request('POST', '/auth/refresh');
    t.is(await readErrorCode(rejection, 401), 'unauthenticated');
    checkCleared(t, rejection);
  }
  client.cookies.set('mg_refresh', refreshToken);
  t.is((await client.request('POST', '/auth/refresh')).status, 200);
});

test('reusing a refresh token ends its session, and the user is notified by mail', async (t) => {
  const email = createEmail();
  const [{ client }, { client: sibling }] = [
    await createWebUser(stack, email),
    await createWebUser(stack, email),
  ];
  const stolen = copyOf(client);
  t.is((await client.request('POST', '/auth/refresh')).status, 200);
  t.true(await isOpen(client));
  const replayed = await stolen.request('POST', '/auth/refresh', undefined, from('203.0.113.9'));
  t.is(await readErrorCode(replayed, 401), 'unauthenticated');
  checkCleared(t, replayed);
  t.false(await isOpen(client));
  t.is((await client.request('POST', '/auth/refresh')).status, 401);
  t.true(await isOpen(sibling), 'other sessions of the user remain');
  const mail = await stack.mailbox!.waitForMail(email);
  t.true(mail.text!.includes('203.0.113.9'));
});

test('of 20 simultaneous refreshes with one token, one succeeds; then the session ends, and one mail is sent', async (t) => {
  const email = createEmail();
  const { client } = await createWebUser(stack, email);
  const copies = Array.from({ length: 20 }, () => copyOf(client));
  const responses = await Promise.all(copies.map((copy) => copy.request('POST', '/auth/refresh')));
  t.deepEqual(
    responses.map(({ status }) => status).sort((a, b) => a - b),
    [200, ...Array<number>(19).fill(401)],
  );
  t.false(await isOpen(client));
  for (const copy of copies) t.false(await isOpen(copy));
  await stack.mailbox!.waitForMail(email);
  const { audit } = webStoresOf(stack);
  const { user } = await webStoresOf(stack).users.findOrCreate(email, { language: 'ru' });
  t.is((await audit.list(user._id, 100)).length, 1);
});

test('a banned user cannot continue an open session', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  await webStoresOf(stack).users.ban(user._id, 'test');
  const rejection = await client.request('POST', '/auth/refresh');
  t.is(await readErrorCode(rejection, 401), 'unauthenticated');
  checkCleared(t, rejection);
  t.deepEqual(await webStoresOf(stack).sessions.list(user._id), []);
});

test('if a session ends while the body of a request is being sent, the request has no effect', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  const body = JSON.stringify({ label: 'Mine' });
  const path = '/v1/web/api-accounts/first';
  const request = http.request(`${stack.url}${path}`, {
    method: 'POST',
    headers: {
      cookie: client.cookieHeader,
      'x-csrf-token': client.csrfToken!,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'x-forwarded-for': '203.0.113.77',
      expect: '100-continue',
    },
  });
  // 100 Continue is sent once the session has been checked.
  request.flushHeaders();
  await once(request, 'continue');
  // The api reuses a session lookup for half a second; after that it checks the session again.
  await setTimeout(600);
  await webStoresOf(stack).sessions.revokeAll(user._id);
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.resume();
  t.is(response.statusCode, 401);
  t.deepEqual(await webStoresOf(stack).links.list(user._id), []);
});

test('signing in with endOtherSessions locks out an attacker that repeatedly ends sessions', async (t) => {
  const { client: attacker, user } = await createWebUser(stack, createEmail());
  const otherUser = await createWebUser(stack, createEmail());
  const loop = async (): Promise<void> => {
    while ((await attacker.request('POST', '/auth/logout-others')).status === 204);
  };
  const loops = Array.from({ length: 4 }, loop);
  const owner = new WebClient(stack.url);
  await signIn(stack, owner, user.email, { endOtherSessions: true });
  await Promise.all(loops);
  t.true(await isOpen(owner));
  t.false(await isOpen(attacker));
  t.is((await attacker.request('POST', '/auth/refresh')).status, 401);
  t.true(await isOpen(otherUser.client));
  const ownIds = (await listSessions(owner)).map(({ id }) => id);
  t.is(ownIds.length, 1);
  const events = await webStoresOf(stack).audit.list(user._id, 10);
  t.deepEqual(
    events.filter(({ sessionId }) => sessionId === ownIds[0]).map(({ action }) => action),
    ['sessions-revoked', 'signed-in'],
  );
});

test('sessions can be ended even if a stolen session has used up the limit of changes', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  await exhaustLimit(stack, 'changes-user', user._id);
  const change = await client.request('PATCH', '/auth/me', { timezone: 'Asia/Tokyo' });
  t.is(await readErrorCode(change, 429), 'too_many_attempts');
  t.is((await client.request('POST', '/auth/logout-others')).status, 204);
  t.is((await client.request('POST', '/auth/logout-all')).status, 204);
  t.false(await isOpen(client));
});

test('a request to end sessions is recorded only if it ended any, even if it is sent several times', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  const { audit } = webStoresOf(stack);
  const missing = await client.request('DELETE', `/auth/sessions/${randomUUID()}`);
  t.is(await readErrorCode(missing, 404), 'not_found');
  for (let i = 0; i < 3; i++) t.is((await client.request('POST', '/auth/logout-others')).status, 204);
  t.deepEqual(await audit.list(user._id, 10), []);
  await createWebUser(stack, user.email);
  for (let i = 0; i < 3; i++) t.is((await client.request('POST', '/auth/logout-others')).status, 204);
  t.is((await audit.list(user._id, 10)).length, 1);
  const copies = Array.from({ length: 5 }, () => copyOf(client));
  await Promise.all(copies.map((copy) => copy.request('POST', '/auth/logout-all')));
  t.false(await isOpen(client));
  for (const copy of copies) t.is((await copy.request('POST', '/auth/logout-all')).status, 401);
});

test('session ids are case-insensitive', async (t) => {
  const [{ client }, { sessionId }] = (await createSessions(2)) as [CreatedUser, CreatedUser];
  t.is((await client.request('DELETE', `/auth/sessions/${sessionId.toUpperCase()}`)).status, 204);
  t.is((await listSessions(client)).length, 1);
});
