import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import type { Session } from '../../../shared/contract/web-sessions.ts';
import { useUp } from '../../support/provoke-errors.ts';
import { readErrorCode } from '../../support/read-error.ts';
import { startOtherApi } from '../../support/other-api.ts';
import type { TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { startWebStack } from '../../support/web-accounts.ts';
import { createWebUser, WebClient, webStoresOf } from '../../support/web-client.ts';
import { createEmail, signIn, from } from '../../support/web-sign-in.ts';

/** What a user sees of sessions and does with them, and how they go on. */

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

/** A second set of what a browser holds, as a thief has it. */
function copyOf(client: WebClient): WebClient {
  const copy = new WebClient(client.url);
  for (const [name, value] of client.cookies) copy.cookies.set(name, value);
  copy.csrfToken = client.csrfToken;
  return copy;
}

/** Sessions of one user, in browsers of their own. */
const createSessions = async (count: number) => {
  const email = createEmail();
  return await Promise.all(Array.from({ length: count }, () => createWebUser(stack, email)));
};

test('a session is shown with its device, its addresses and its times, and which one is current', async (t) => {
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

test('a session tells where it was last used from', async (t) => {
  const { client, sessionId } = await createWebUser(stack, createEmail());
  const documents = stack.mongo.db.collection<{ _id: string; lastUsedAt: Date }>('web_sessions');
  const longAgo = new Date(Date.now() - 61_000);
  await documents.updateOne({ _id: sessionId }, { $set: { lastUsedAt: longAgo } });
  await client.request('GET', '/auth/me', undefined, from('203.0.113.77'));
  // Not by listing the sessions, which is a use as well, from another address.
  await waitFor('the use to be noted', async () => {
    const document = await documents.findOne({ _id: sessionId });
    return document!.lastUsedAt > longAgo;
  });
  const [session] = await listSessions(client);
  t.is(session!.ip_last_used, '203.0.113.77');
  t.is(session!.ip_created, '127.0.0.1');
});

test('a session that is revoked opens nothing any more from the next request on, at every api process', async (t) => {
  const otherUrl = await startOtherApi(t, stack);
  const [{ client: mine }, { client: lost, sessionId }] = (await createSessions(2)) as [Created, Created];
  const lostElsewhere = Object.assign(copyOf(lost), { url: otherUrl });
  t.true(await isOpen(lostElsewhere));
  const revoked = await mine.request('DELETE', `/auth/sessions/${sessionId}`);
  t.is(revoked.status, 204);
  t.deepEqual(revoked.headers.getSetCookie(), [], 'the own session goes on');
  t.false(await isOpen(lostElsewhere));
  t.false(await isOpen(lost));
  t.is((await lost.request('POST', '/auth/refresh')).status, 401);
  t.is((await listSessions(mine)).length, 1);
  t.is((await mine.request('DELETE', `/auth/sessions/${sessionId}`)).status, 404);
});

type Created = Awaited<ReturnType<typeof createWebUser>>;

test('a session of another user is as unknown as one that does not exist', async (t) => {
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

test('signing out, and revoking the own session, end it and take the cookies away', async (t) => {
  const end: ((created: Created) => Promise<Response>)[] = [
    ({ client }) => client.request('POST', '/auth/logout'),
    ({ client, sessionId }) => client.request('DELETE', `/auth/sessions/${sessionId}`),
  ];
  for (const leave of end) {
    const [left, other] = (await createSessions(2)) as [Created, Created];
    const kept = copyOf(left.client);
    const response = await leave(left);
    t.is(response.status, 204);
    checkCleared(t, response);
    t.false(await isOpen(kept), 'the cookies are of no use to whoever kept them');
    t.is((await kept.request('POST', '/auth/refresh')).status, 401);
    t.true(await isOpen(other.client), 'other sessions go on');
  }
});

test('whoever signs out after the session cookie has expired is signed out, without a CSRF token', async (t) => {
  const { sessions, audit } = webStoresOf(stack);
  const documents = stack.mongo.db.collection<{ _id: string }>('web_sessions');
  const lose: ((created: Created) => unknown)[] = [
    ({ client }) => client.cookies.delete('mg_session'),
    ({ sessionId }) => documents.updateOne({ _id: sessionId }, { $set: { accessExpiresAt: new Date(0) } }),
    // A page whose refresh was answered to nobody still has the tokens from before.
    ({ client }) => sessions.refresh(client.cookies.get('mg_refresh')!, '127.0.0.1'),
  ];
  for (const loseSession of lose) {
    const [left, other] = (await createSessions(2)) as [Created, Created];
    await loseSession(left);
    left.client.csrfToken = null;
    const kept = copyOf(left.client);
    const response = await left.client.request('POST', '/auth/logout', undefined, { origin: stack.url });
    t.is(response.status, 204);
    checkCleared(t, response);
    t.is((await kept.request('POST', '/auth/refresh')).status, 401);
    t.true(await isOpen(other.client), 'other sessions go on');
    t.like(await audit.list(left.user._id, 10), [{ action: 'signed-out', sessionId: left.sessionId }]);
  }
});

test('signing out of a session that has ended is a 401 that takes the cookies away', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  await webStoresOf(stack).sessions.revokeAll(user._id);
  const refused = await client.request('POST', '/auth/logout');
  t.is(await readErrorCode(refused, 401), 'unauthenticated');
  checkCleared(t, refused);
});

test('no other page can sign a user out, and with a session cookie that is good the CSRF token is asked for', async (t) => {
  const { client } = await createWebUser(stack, createEmail());
  const foreign = { origin: 'https://evil.example' };
  const withToken = copyOf(client);
  client.csrfToken = null;
  const refused = await client.request('POST', '/auth/logout');
  t.is(await readErrorCode(refused, 403), 'csrf_failed');
  t.deepEqual(refused.headers.getSetCookie(), []);
  client.cookies.delete('mg_session');
  for (const one of [client, withToken]) {
    const forged = await one.request('POST', '/auth/logout', undefined, foreign);
    t.is(await readErrorCode(forged, 403), 'origin_refused');
    t.deepEqual(forged.headers.getSetCookie(), []);
  }
  t.true(await isOpen(withToken));
});

test('all sessions are ended at once, or all but the own one, and none of another user', async (t) => {
  const [mine, ...others] = (await createSessions(3)) as [Created, ...Created[]];
  const stranger = await createWebUser(stack, createEmail());
  const others204 = await mine.client.request('POST', '/auth/logout-others');
  t.is(others204.status, 204);
  t.deepEqual(others204.headers.getSetCookie(), []);
  t.true(await isOpen(mine.client));
  for (const { client } of others) t.false(await isOpen(client));

  const kept = copyOf(mine.client);
  const all = await mine.client.request('POST', '/auth/logout-all');
  t.is(all.status, 204);
  checkCleared(t, all);
  t.false(await isOpen(kept));
  t.true(await isOpen(stranger.client));
});

function checkCleared(t: ExecutionContext, response: Response): void {
  const gone = (name: string): string =>
    `${name}=; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT; samesite=lax; httponly`;
  t.deepEqual(response.headers.getSetCookie(), [gone('mg_session'), gone('mg_refresh')]);
}

test('a refresh replaces both cookies and the CSRF token, and those before open nothing any more', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  const before = copyOf(client);
  // A page that was reloaded has lost its CSRF token.
  client.csrfToken = null;
  const refreshed = await client.request('POST', '/auth/refresh', undefined, { origin: stack.url });
  t.is(refreshed.status, 200);
  const result = await client.keepResult(refreshed);
  t.is(result.user.id, user._id);
  for (const name of ['mg_session', 'mg_refresh']) t.not(client.cookies.get(name), before.cookies.get(name));
  t.not(result.csrf_token, before.csrfToken);

  t.false(await isOpen(before), 'the access cookie from before');
  t.true(await isOpen(client));
  const change = { timezone: 'Europe/Paris' };
  const oldCsrf = { 'x-csrf-token': before.csrfToken! };
  t.is(await readErrorCode(await client.request('PATCH', '/auth/me', change, oldCsrf), 403), 'csrf_failed');
  t.is((await client.request('PATCH', '/auth/me', change)).status, 200);
});

test('a refresh works where the access cookie has expired, and not without the refresh cookie', async (t) => {
  const { client } = await createWebUser(stack, createEmail());
  const refreshToken = client.cookies.get('mg_refresh')!;
  client.cookies.delete('mg_refresh');
  t.is(await readErrorCode(await client.request('POST', '/auth/refresh'), 401), 'unauthenticated');
  client.cookies.clear();
  for (const madeUp of ['x', `${refreshToken}x`]) {
    client.cookies.set('mg_refresh', madeUp);
    const refused = await client.request('POST', '/auth/refresh');
    t.is(await readErrorCode(refused, 401), 'unauthenticated');
    checkCleared(t, refused);
  }
  client.cookies.set('mg_refresh', refreshToken);
  t.is((await client.request('POST', '/auth/refresh')).status, 200);
});

test('a refresh token that comes a second time ends its session, and the user is told by mail', async (t) => {
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
  t.true(await isOpen(sibling), 'other sessions of the user go on');
  const mail = await stack.mailbox!.waitForMail(email);
  t.true(mail.text!.includes('203.0.113.9'));
});

test('of 20 refreshes at once with one token one is answered, the session is dead, and one mail says so', async (t) => {
  const email = createEmail();
  const { client } = await createWebUser(stack, email);
  const copies = Array.from({ length: 20 }, () => copyOf(client));
  const answers = await Promise.all(copies.map((copy) => copy.request('POST', '/auth/refresh')));
  t.deepEqual(
    answers.map(({ status }) => status).sort((a, b) => a - b),
    [200, ...Array<number>(19).fill(401)],
  );
  t.false(await isOpen(client));
  for (const copy of copies) t.false(await isOpen(copy));
  await stack.mailbox!.waitForMail(email);
  const { audit } = webStoresOf(stack);
  const { user } = await webStoresOf(stack).users.findOrCreate(email, { language: 'ru' });
  t.is((await audit.list(user._id, 100)).length, 1);
});

test('a banned user cannot go on with a session that was left open', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  await webStoresOf(stack).users.ban(user._id, 'test');
  const refused = await client.request('POST', '/auth/refresh');
  t.is(await readErrorCode(refused, 401), 'unauthenticated');
  checkCleared(t, refused);
  t.deepEqual(await webStoresOf(stack).sessions.list(user._id), []);
});

test('a request whose session is ended while its body is on its way does nothing', async (t) => {
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
  // The body is asked for once the session has been looked at.
  request.flushHeaders();
  await once(request, 'continue');
  // By the api's clock, what it knew half a second ago is old.
  await setTimeout(600);
  await webStoresOf(stack).sessions.revokeAll(user._id);
  request.end(body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  response.resume();
  t.is(response.statusCode, 401);
  t.deepEqual(await webStoresOf(stack).links.list(user._id), []);
});

test('a sign-in that ends the other sessions shuts out a thief who ends sessions in a loop', async (t) => {
  const { client: thief, user } = await createWebUser(stack, createEmail());
  const stranger = await createWebUser(stack, createEmail());
  const loop = async (): Promise<void> => {
    while ((await thief.request('POST', '/auth/logout-others')).status === 204);
  };
  const loops = Array.from({ length: 4 }, loop);
  const owner = new WebClient(stack.url);
  await signIn(stack, owner, user.email, { endOtherSessions: true });
  await Promise.all(loops);
  t.true(await isOpen(owner));
  t.false(await isOpen(thief));
  t.is((await thief.request('POST', '/auth/refresh')).status, 401);
  t.true(await isOpen(stranger.client));
  const own = (await listSessions(owner)).map(({ id }) => id);
  t.is(own.length, 1);
  const events = await webStoresOf(stack).audit.list(user._id, 10);
  t.deepEqual(
    events.filter(({ sessionId }) => sessionId === own[0]).map(({ action }) => action),
    ['sessions-revoked', 'signed-in'],
  );
});

test('sessions can be ended however many changes a stolen one makes', async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  await useUp(stack, 'changes-user', user._id);
  const change = await client.request('PATCH', '/auth/me', { timezone: 'Asia/Tokyo' });
  t.is(await readErrorCode(change, 429), 'too_many_attempts');
  t.is((await client.request('POST', '/auth/logout-others')).status, 204);
  t.is((await client.request('POST', '/auth/logout-all')).status, 204);
  t.false(await isOpen(client));
});

test('only what is ended is written down as ended, however often it is asked for', async (t) => {
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

test('a session is ended by its ID in capitals as well', async (t) => {
  const [{ client }, { sessionId }] = (await createSessions(2)) as [Created, Created];
  t.is((await client.request('DELETE', `/auth/sessions/${sessionId.toUpperCase()}`)).status, 204);
  t.is((await listSessions(client)).length, 1);
});
