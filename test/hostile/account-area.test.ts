import { randomBytes } from 'node:crypto';
import http from 'node:http';
import test from 'ava';
import { maxCallsPerAccount } from '../../shared/contract/operation.ts';
import { postJson } from '../support/post-json.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWebUser, WebClient, webStoresOf } from '../support/web-client.ts';
import { from, signIn } from '../support/web-sign-in.ts';
import { floodCaptchas } from './attacks/captcha-flood.ts';
import { sendMadeUpSessions } from './attacks/made-up-sessions.ts';
import { readInParallel } from './attacks/parallel-reads.ts';

/** The BSON of a command that looks up a session. */
const lookUpMark = '\u0002find\0\r\0\0\0web_sessions\0';

/** Anyone can send requests to the account area, with or without an account. They must not block its users. */

let stack: TestStack;

test.before(async () => {
  const env = { TRUST_PROXY: 'on', PUBLIC_URL: 'https://gateway.example' };
  stack = await startStack({ holdsMongo: true, env });
});
test.after.always(() => stack?.close());

test.serial('thousands of made-up cookies cause no MongoDB query', async (t) => {
  const { client } = await createWebUser(stack, 'made-up@example.com');
  const issuedToken = client.cookies.get('__Host-mg_session')!;
  const proxy = stack.mongoProxy!;
  const countSessions = (): number => proxy.countSent(lookUpMark);
  const before = countSessions();
  const target = { url: stack.url, prefix: '__Host-', issued: issuedToken };
  const statuses = await sendMadeUpSessions({ ...target, requests: 2_000, concurrency: 64 });
  t.deepEqual([...statuses], [[401, 2_000]]);
  t.is(countSessions(), before);
  t.is((await client.request('GET', '/api-accounts')).status, 200);
  t.true(countSessions() > before);
});

test.serial('made-up cookies are rejected even while MongoDB is slow', async (t) => {
  const { client } = await createWebUser(stack, 'slow@example.com');
  const proxy = stack.mongoProxy!;
  const before = proxy.countSent(lookUpMark);
  proxy.hold(lookUpMark);
  const waiting = Array.from({ length: 16 }, () => client.request('GET', '/auth/me'));
  await waitFor('four session lookups', () => proxy.countSent(lookUpMark) >= before + 4);
  const statuses = await sendMadeUpSessions({
    url: stack.url,
    prefix: '__Host-',
    requests: 100,
    concurrency: 16,
  });
  t.deepEqual([...statuses], [[401, 100]]);
  proxy.release();
  for (const response of await Promise.all(waiting)) t.is(response.status, 200);
});

test.serial('if the MongoDB queries of one user are slow, other users are not affected', async (t) => {
  const [{ client, user }, other] = [
    await createWebUser(stack, 'greedy@example.com'),
    await createWebUser(stack, 'patient@example.com'),
  ];
  const proxy = stack.mongoProxy!;
  proxy.hold(user._id);
  const paths = ['/auth/me', '/auth/sessions', '/api-accounts'];
  const calls = Array.from({ length: 60 }, (_, i) => client.request('GET', paths[i % paths.length]!));
  await waitFor("the user's calls at MongoDB", () => proxy.countSent(user._id) >= 4);
  t.is((await other.client.request('GET', '/auth/me')).status, 200);
  t.is((await other.client.request('GET', '/auth/sessions')).status, 200);
  t.true(proxy.countSent(user._id) <= 8, `${proxy.countSent(user._id)} concurrently`);
  proxy.release();
  for (const response of await Promise.all(calls)) t.is(response.status, 200);
});

test.serial(
  'if a session ends while its logout-others call is in flight, the call does not end sessions started later',
  async (t) => {
    const { client: thief, user } = await createWebUser(stack, 'robbed@example.com', {
      headers: from('203.0.113.66'),
    });
    await createWebUser(stack, user.email);
    const proxy = stack.mongoProxy!;
    // The thief's call has looked up the sessions and recorded the action, and is about to end the sessions.
    proxy.hold('203.0.113.66');
    const thiefCall = thief.request('POST', '/auth/logout-others');
    await waitFor("the thief's write", () => proxy.countSent('203.0.113.66') > 0);
    const owner = new WebClient(stack.url);
    await signIn(stack, owner, user.email, { endOtherSessions: true });
    proxy.release();
    t.is((await thiefCall).status, 204);
    t.is((await owner.request('GET', '/auth/me')).status, 200);
    t.is((await thief.request('GET', '/auth/me')).status, 401);
  },
);

test.serial('the owner of a stolen session can end it while calls of that session hang', async (t) => {
  const [{ client: thief }, { client: owner }] = [
    await createWebUser(stack, 'hanging@example.com'),
    await createWebUser(stack, 'hanging@example.com'),
  ];
  const headers = {
    cookie: thief.cookieHeader,
    'x-csrf-token': thief.csrfToken!,
    'content-type': 'application/json',
    'content-length': '100',
  };
  // One call more than the limit: once one call is rejected, all others are in flight.
  const rejectedStatus = await new Promise<number | undefined>((resolve) => {
    for (let i = 0; i <= maxCallsPerAccount; i++) {
      const request = http.request(`${stack.url}/v1/web/auth/me`, { method: 'PATCH', headers, agent: false });
      request.once('response', ({ statusCode }) => resolve(statusCode));
      request.on('error', () => undefined).write('{');
      t.teardown(() => request.destroy());
    }
  });
  t.is(rejectedStatus, 429);
  t.is((await owner.request('GET', '/auth/sessions')).status, 200);
  t.is((await owner.request('POST', '/auth/logout-others')).status, 204);
  t.is((await thief.request('GET', '/auth/me')).status, 401);
});

test.serial('a flood of captchas from one network is limited, and another network is served', async (t) => {
  const flood = floodCaptchas({ url: stack.url, requests: 200 });
  const other = await postJson(
    `${stack.url}/v1/web/auth/captcha/challenge`,
    null,
    { purpose: 'login' },
    {
      'x-forwarded-for': '2001:db8:1:2::1',
    },
  );
  t.is(other.status, 201);
  const statuses = await flood;
  t.is(statuses.get(429), 140);
  // Of the other 60, those that found a ready captcha or one of the network's few queue positions are served.
  t.true(statuses.get(201)! >= 5);
  t.is((statuses.get(201) ?? 0) + (statuses.get(503) ?? 0), 60);
});

test.serial(
  'if one user sends 250 log reads, those over the limit are rejected and other users can chat and sign in',
  async (t) => {
    const { client, user } = await createWebUser(stack, 'reader@example.com');
    const [reader, other] = [await stack.createAccount(), await stack.createAccount()];
    const link = { userId: user._id, accountId: reader.id, label: 'mine' };
    const { _id: linkId } = await webStoresOf(stack).links.create(link);
    const seen: number[] = [];
    // Admitted calls are held at MongoDB, so that all of them are in flight together even if they arrive slowly.
    stack.mongoProxy!.hold(reader.id);
    const attack = readInParallel({
      url: stack.url,
      apiKey: '',
      headers: { cookie: client.cookieHeader },
      count: 250,
      paths: ['request-logs', 'stats', 'refill-logs'].map((log) => `/web/api-accounts/${linkId}/${log}`),
      onResponse: (status) => seen.push(status),
    });
    await waitFor('a rejection', () => seen.includes(429));
    stack.mongoProxy!.release();
    const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hi' }] };
    const { client: neighbour } = await createWebUser(stack, 'neighbour@example.com');
    for (let i = 0; i < 3; i++) {
      t.is((await stack.post('/v1/chat/completions', other.apiKey, chat)).status, 200);
      t.is((await neighbour.request('GET', '/auth/me')).status, 200);
    }
    const { statuses, refused } = await attack;
    t.is([...statuses.keys()].filter((status) => status !== 200 && status !== 429).length, 0);
    t.is(statuses.get(200)! + statuses.get(429)!, 250);
    for (const { code, message, retryAfter } of refused) {
      t.is(code, 'rate_limit_exceeded');
      t.regex(message, /at most 128 requests that do not call a model/);
      t.true(Number(retryAfter) > 0);
    }
    t.is((await client.request('GET', `/api-accounts/${linkId}/request-logs`)).status, 200);
  },
);

const readMe = (cookie: string): Promise<Response> =>
  fetch(`${stack.url}/v1/web/auth/me`, { headers: { cookie } });

const refresh = (cookie: string): Promise<Response> =>
  fetch(`${stack.url}/v1/web/auth/refresh`, { method: 'POST', headers: { cookie } });

test.serial('over https, cookies without the __Host- prefix are ignored', async (t) => {
  const { client } = await createWebUser(stack, 'prefix@example.com');
  const access = client.cookies.get('__Host-mg_session')!;
  const refreshToken = client.cookies.get('__Host-mg_refresh')!;
  const names = [
    'mg_session',
    '__Secure-mg_session',
    '__host-mg_session',
    '__Host-mg_session ',
    '__Host-mg_sessio',
    'x__Host-mg_session',
  ];
  for (const name of names) t.is((await readMe(`${name}=${access}`)).status, 401, name);
  t.is((await refresh(`mg_refresh=${refreshToken}`)).status, 401);
  // A cookie without the prefix does not override a cookie with it either.
  const { client: intruder } = await createWebUser(stack, 'intruder@example.com');
  const planted = `mg_session=${intruder.cookies.get('__Host-mg_session')!}`;
  const own = `__Host-mg_session=${access}`;
  for (const cookie of [`${planted}; ${own}`, `${own}; ${planted}`])
    t.like(await (await readMe(cookie)).json(), { email: 'prefix@example.com' });
});

test.serial(
  'a token is valid only in its own cookie and unmodified, and a made-up one is invalid',
  async (t) => {
    const { client } = await createWebUser(stack, 'tokens@example.com');
    const access = client.cookies.get('__Host-mg_session')!;
    const refreshToken = client.cookies.get('__Host-mg_refresh')!;
    const wrong = [
      refreshToken,
      '',
      `${access}=`,
      `${access}A`,
      access.slice(1),
      access.toLowerCase(),
      encodeURIComponent(`${access}\n`),
      `"${access}`,
      // Only some bits of the last character carry data; two are unused.
      `${access.slice(0, -1)}${access.endsWith('B') ? 'C' : 'B'}`,
      randomBytes(64).toString('base64url'),
      'x'.repeat(8_000),
    ];
    for (const token of wrong)
      t.is((await readMe(`__Host-mg_session=${token}`)).status, 401, token.slice(0, 100));
    for (const token of [access, '', randomBytes(64).toString('base64url')])
      t.is((await refresh(`__Host-mg_refresh=${token}`)).status, 401);
    t.is((await readMe(`__Host-mg_session=${access}`)).status, 200);
  },
);

test.serial(
  'if a cookie is sent twice the first one is used, and cookies of two users are never combined',
  async (t) => {
    const [one, two] = [
      await createWebUser(stack, 'one@example.com'),
      await createWebUser(stack, 'two@example.com'),
    ];
    const [a, b] = [one, two].map(
      ({ client }) => `__Host-mg_session=${client.cookies.get('__Host-mg_session')!}`,
    );
    t.like(await (await readMe(`${a}; ${b}`)).json(), { email: 'one@example.com' });
    t.like(await (await readMe(`${b}; ${a}`)).json(), { email: 'two@example.com' });
    t.is((await readMe(`__Host-mg_session=x; ${a}`)).status, 401);
    // The CSRF token of one user does not work with another user's cookie.
    const changed = await fetch(`${stack.url}/v1/web/auth/logout-all`, {
      method: 'POST',
      headers: { cookie: `${b}; ${a}`, 'x-csrf-token': one.client.csrfToken! },
    });
    t.is(changed.status, 403);
  },
);
