import test from 'ava';
import { readCode } from '../../support/mailbox.ts';
import { startOtherApi } from '../../support/other-api.ts';
import { readErrorCode } from '../../support/read-error.ts';
import { startStack, type TestStack } from '../../support/stack.ts';
import { createWebUser, WebClient, webStoresOf } from '../../support/web-client.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  createAddress,
  createEmail,
  from,
  issueCode,
  signIn,
  verifyCode,
} from '../../support/web-sign-in.ts';

/** Signing in with a mailed code. */

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ mail: true, env: { WEB_CAPTCHA: 'off', TRUST_PROXY: 'on' } });
});
test.after.always(() => stack?.close());

/** A browser with its own client address. */
const createClient = (url = stack.url): WebClient => new WebClient(url, { headers: from(createAddress()) });
const readMailedCode = async (to: string): Promise<string> => readCode(await stack.mailbox!.waitForMail(to));

test('a user signs up with a mailed code, changes the time zone, signs out, and signs in as the same user', async (t) => {
  const [email, client] = [createEmail(), createClient()];
  const first = await client.signIn(email, readMailedCode, { timezone: 'europe/moscow' });
  t.like(first.user, { email, timezone: 'Europe/Moscow' });
  t.truthy(first.user.last_login_at);
  t.like(await (await client.request('GET', '/auth/me')).json(), first.user);
  const changed = await client.request('PATCH', '/auth/me', { timezone: 'Asia/Tokyo' });
  t.deepEqual(await changed.json(), { ...first.user, timezone: 'Asia/Tokyo' });
  t.is((await client.request('POST', '/auth/logout')).status, 204);
  t.is(await readErrorCode(await client.request('GET', '/auth/me'), 401), 'unauthenticated');

  const options = { purpose: 'login', timezone: 'Africa/Cairo' } as const;
  const { user } = await client.signIn(email, readMailedCode, options);
  t.like(user, { id: first.user.id, created_at: first.user.created_at });
  t.is(user.timezone, 'Asia/Tokyo', 'the time zone of a sign-in only applies to new users');
  t.true(Date.parse(user.last_login_at!) > Date.parse(first.user.last_login_at!));

  const signedUp = await createClient().signIn(email, readMailedCode, { purpose: 'signup' });
  t.is(signedUp.user.id, user.id, 'signing up again signs in');
  const events = await waitFor('all actions to be recorded as done', async () => {
    const recorded = await webStoresOf(stack).audit.list(user.id, 10);
    return recorded.every(({ outcome }) => outcome === 'done') ? recorded : null;
  });
  t.deepEqual(
    events.map(({ action }) => action),
    ['signed-in', 'signed-in', 'signed-out', 'timezone-changed', 'signed-up'],
  );
});

test('one mailbox is one user, in every spelling of its address', async (t) => {
  const email = createEmail();
  const first = await createClient().signIn(email, readMailedCode);
  const uppercase = await createClient().signIn(` ${email.toUpperCase()} `, () => readMailedCode(email), {
    purpose: 'login',
  });
  t.is(uppercase.user.id, first.user.id);
});

test('a code may be pasted with spaces, as some mail programs show it', async (t) => {
  const { challengeId, code } = await issueCode(stack, createEmail());
  const pasted = ` ${code.slice(0, 3)} ${code.slice(3)} `;
  const response = await verifyCode(new WebClient(stack.url), { challengeId, code: pasted });
  t.is(response.status, 200);
});

test('a code with a hyphen, invisible characters or full-width digits is right', async (t) => {
  const fullWidth = (code: string): string =>
    code.replaceAll(/\d/g, (digit) => String.fromCharCode(digit.charCodeAt(0) + 0xfee0));
  for (const write of [
    (code: string) => `${code.slice(0, 3)}-${code.slice(3)}`,
    (code: string) => `\u200b${code.slice(0, 3)}\u2060${code.slice(3)}\ufeff`,
    fullWidth,
  ]) {
    const { challengeId, code } = await issueCode(stack, createEmail());
    t.is((await verifyCode(createClient(), { challengeId, code: write(code) })).status, 200, write(code));
  }
});

test('a time zone that a browser does not know is UTC', async (t) => {
  for (const timezone of ['Etc/Unknown', '+03:00', 'GMT+3', '', null]) {
    const email = createEmail();
    const { user } = await createClient().signIn(email, readMailedCode, { timezone } as never);
    t.is((user as { timezone: string }).timezone, 'UTC', String(timezone));
  }
});

test('only one of 20 simultaneous verifications of a code signs in, and one user is created', async (t) => {
  const [email, code] = [createEmail(), await issueCode(stack, createEmail())];
  const responses = await Promise.all(Array.from({ length: 20 }, () => verifyCode(createClient(), code)));
  t.deepEqual(
    responses.map(({ status }) => status).sort((a, b) => a - b),
    [200, ...Array<number>(19).fill(422)],
  );
  t.is(await readErrorCode(await verifyCode(createClient(), code), 422), 'invalid_code');

  const codes = await Promise.all(Array.from({ length: 5 }, () => issueCode(stack, email)));
  const all = await Promise.all(codes.map((code) => verifyCode(createClient(), code)));
  const users = await Promise.all(all.map(async (one) => (await createClient().keepResult(one)).user.id));
  t.is(new Set(users).size, 1, 'five simultaneous codes of a new address are one user with five sessions');
});

test('a wrong, an unknown and an exhausted code get the same response, and set no cookie', async (t) => {
  const [right, exhausted] = [await issueCode(stack, createEmail()), await issueCode(stack, createEmail())];
  const wrongAttempt = { ...exhausted, code: exhausted.code === '000000' ? '000001' : '000000' };
  const client = createClient();
  const responses = [];
  for (let i = 0; i < 5; i++) responses.push(await verifyCode(client, wrongAttempt));
  responses.push(await verifyCode(client, exhausted));
  responses.push(await verifyCode(client, { ...right, challengeId: '7d0b6a53-9c1e-4a7e-8f1b-0b2f6f9b7c42' }));
  responses.push(await verifyCode(client, { ...right, code: 'not a code' }));
  const bodies = new Set<string>();
  for (const response of responses) {
    t.is(response.status, 422);
    t.deepEqual(response.headers.getSetCookie(), []);
    bodies.add(await response.text());
  }
  t.is(bodies.size, 1);
  t.like(JSON.parse([...bodies][0]!), {
    error: { code: 'invalid_code' },
    detail: [{ loc: ['body', 'code'], type: 'invalid_code' }],
  });
  t.is((await verifyCode(client, right)).status, 200, 'one wrong attempt does not invalidate the code');
});

test('a login code for an address without a user, and a code that confirms an action, are rejected like wrong codes', async (t) => {
  const email = createEmail();
  const { user } = await createWebUser(stack, createEmail());
  const codes = [
    await issueCode(stack, email, 'login'),
    await issueCode(stack, user.email, 'reveal', `${user._id}:1`),
    await issueCode(stack, user.email, 'reveal'),
  ];
  for (const code of codes) {
    t.is(await readErrorCode(await verifyCode(createClient(), code), 422), 'invalid_code');
  }
  t.is(await webStoresOf(stack).users.findByEmail(email), null);
});

test('a banned user is told of the ban only after entering the right code, and gets no session', async (t) => {
  const { users, sessions } = webStoresOf(stack);
  const { user } = await users.findOrCreate(createEmail(), { language: 'en' });
  await users.ban(user._id, 'test');
  for (const purpose of ['login', 'signup'] as const) {
    const code = await issueCode(stack, user.email, purpose);
    const wrongAttempt = { ...code, code: `${code.code.slice(0, 5)}${(Number(code.code[5]) + 1) % 10}` };
    t.is(await readErrorCode(await verifyCode(createClient(), wrongAttempt), 422), 'invalid_code');
    const rejection = await verifyCode(createClient(), code);
    t.deepEqual(rejection.headers.getSetCookie(), []);
    t.is(await readErrorCode(rejection, 403), 'account_banned');
  }
  t.deepEqual(await sessions.list(user._id), []);
  const requested = await createClient().request('POST', '/auth/request-code', { email: user.email });
  t.is(requested.status, 201, 'a banned user is mailed a code like any other');
  t.truthy(await readMailedCode(user.email));
});

test('signing in ends the previous session of the browser, even if its access cookie has expired', async (t) => {
  const { sessions } = webStoresOf(stack);
  for (const hasExpired of [false, true]) {
    const { client, user, sessionId } = await createWebUser(stack, createEmail());
    const [elsewhere, former] = [new WebClient(stack.url), new Map(client.cookies)];
    await signIn(stack, elsewhere, user.email);
    if (hasExpired) client.cookies.delete('mg_session');
    await signIn(stack, client, user.email);
    const remaining = await sessions.list(user._id);
    t.is(remaining.length, 2, 'the new session, and that of the other browser');
    t.false(remaining.some(({ _id }) => _id === sessionId));
    t.is((await elsewhere.request('GET', '/auth/me')).status, 200);
    t.is((await client.request('GET', '/auth/me')).status, 200);
    t.is(await sessions.find(former.get('mg_session')!), null);
  }
});

test('if a sign-in ends a session, the audit log has it; if its token had been replaced by a refresh before, the user is notified', async (t) => {
  const { audit, sessions } = webStoresOf(stack);
  for (const isReplaced of [false, true]) {
    const { client, user, sessionId } = await createWebUser(stack, createEmail());
    if (isReplaced) await sessions.refresh(client.cookies.get('mg_refresh')!, '203.0.113.8');
    await signIn(stack, client, createEmail());
    const action = isReplaced ? 'refresh-replayed' : 'signed-out';
    t.like(await audit.list(user._id, 10), [{ action, sessionId }]);
    t.deepEqual(await sessions.list(user._id), []);
    if (isReplaced) t.truthy(await stack.mailbox!.waitForMail(user.email));
  }
});

test('the audit log has the id of the session that each sign-in created', async (t) => {
  const [email, client] = [createEmail(), createClient()];
  await signIn(stack, createClient(), email);
  await signIn(stack, client, email);
  const { audit, sessions, users } = webStoresOf(stack);
  const { _id: userId } = (await users.findByEmail(email))!;
  const [second, first] = await audit.list(userId, 10);
  t.like(second, {
    action: 'signed-in',
    sessionId: (await sessions.find(client.cookies.get('mg_session')!))!._id,
  });
  t.like(first, { action: 'signed-up' });
  const ids = (await sessions.list(userId)).map(({ _id }) => _id);
  t.deepEqual([second!.sessionId, first!.sessionId], ids, 'most recently used first');
});

test("a failed sign-in leaves the browser's session unchanged", async (t) => {
  const { client, user } = await createWebUser(stack, createEmail());
  const code = await issueCode(stack, user.email);
  t.is((await verifyCode(client, { ...code, code: 'x' })).status, 422);
  t.is((await client.request('GET', '/auth/me')).status, 200);
});

test('with sign-up off, requesting a sign-up code is the same 422 for every address, and existing users can sign in', async (t) => {
  const url = await startOtherApi(t, stack, { SIGNUP: 'off' });
  const { user } = await createWebUser(stack, createEmail());
  const bodies = new Set<string>();
  for (const email of [user.email, createEmail()]) {
    const rejection = await createClient(url).request('POST', '/auth/request-code', {
      email,
      purpose: 'signup',
    });
    t.is(rejection.status, 422);
    bodies.add(await rejection.text());
  }
  t.is(bodies.size, 1);
  const [body] = bodies;
  t.like(JSON.parse(body!), {
    error: { code: 'validation_failed' },
    detail: [{ loc: ['body', 'purpose'] }],
  });
  const signedIn = await createClient(url).signIn(user.email, readMailedCode, { purpose: 'login' });
  t.is(signedIn.user.id, user._id);

  const email = createEmail();
  const late = await verifyCode(createClient(url), await issueCode(stack, email, 'signup'));
  t.is(await readErrorCode(late, 422), 'invalid_code', 'an older code creates no user either');
  t.is(await webStoresOf(stack).users.findByEmail(email), null);
});

test('a validation error has the location of the invalid field', async (t) => {
  const { client } = await createWebUser(stack, createEmail());
  const [email, challenge_id] = [createEmail(), '7d0b6a53-9c1e-4a7e-8f1b-0b2f6f9b7c42'];
  const cases = [
    ['POST', '/auth/request-code', {}, 'email'],
    ['POST', '/auth/request-code', { email: 'anna@' }, 'email'],
    ['POST', '/auth/request-code', { email: 'anna@example.com\r\nBcc: eve@example.com' }, 'email'],
    ['POST', '/auth/request-code', { email, purpose: 'reveal' }, 'purpose'],
    ['POST', '/auth/request-code', { email, captcha_token: 'short' }, 'captcha_token'],
    ['POST', '/auth/captcha/challenge', {}, 'purpose'],
    ['POST', '/auth/captcha/verify', { challenge_id: 'x'.repeat(20), points: [] }, 'points'],
    ['POST', '/auth/verify-code', { challenge_id: '1', code: '123456' }, 'challenge_id'],
    ['POST', '/auth/verify-code', { challenge_id }, 'code'],
    ['POST', '/auth/verify-code', { challenge_id, code: '123456', remember_me: 'yes' }, 'remember_me'],
    ['PATCH', '/auth/me', {}, 'timezone'],
  ] as const;
  for (const [method, path, body, field] of cases) {
    const response = await client.request(method, path, body);
    const { detail } = (await response.json()) as { detail: { loc: string[] }[] };
    t.is(response.status, 422, path);
    t.deepEqual(detail[0]!.loc, ['body', field], path);
  }
});
