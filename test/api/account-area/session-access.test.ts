import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { tinyPng } from '../../../shared/contract/image-stream.ts';
import type { HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import { changeSettings } from '../../support/change-settings.ts';
import type { ErrorBody } from '../../support/call-api.ts';
import { readSse } from '../../support/sse-events.ts';
import { findRow } from '../../support/observe.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { TestAccount, TestStack } from '../../support/stack.ts';
import {
  banAccount,
  callWeb,
  createSeparateUser,
  linkAccount,
  startWebStack,
} from '../../support/web-accounts.ts';
import { webStoresOf, type WebClient } from '../../support/web-client.ts';

/** Operations of a key, called with a session and `X-Api-Account`. */

let stack: TestStack;
test.before(async () => {
  stack = await startWebStack({ env: { CORS_ORIGINS: '*' } });
});
test.after.always(() => stack?.close());

interface Caller {
  readonly client: WebClient;
  readonly userId: string;
  readonly address: string;
  readonly account: TestAccount;
  readonly linkId: number;
}

async function createCaller(options: { balance?: string; rpm?: number } = {}): Promise<Caller> {
  const { client, user, address } = await createSeparateUser(stack);
  const account = await stack.createAccount({ balance: '100', ...options });
  const { id: linkId } = await linkAccount(client, account);
  return { client, userId: user._id, address, account, linkId };
}

const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hello there' }], max_tokens: 50 };
const chatPath = '/chat/completions';

async function checkRefusal(
  t: ExecutionContext,
  response: Response,
  [status, code, message]: readonly [number, string, RegExp],
): Promise<void> {
  const body = (await response.json()) as ErrorBody;
  t.is(response.status, status, JSON.stringify(body));
  t.is(body.error.code, code);
  t.regex(body.error.message, message);
  t.is(response.headers.get('cache-control'), 'no-store');
}

/** Repeats a call until it is refused, for at most the time in which that must happen. */
async function waitForRefusal(call: () => Promise<Response>): Promise<Response> {
  const startedMs = performance.now();
  return await waitFor('the session to be refused', async () => {
    const sentMs = performance.now();
    const response = await call();
    if (response.ok && sentMs - startedMs > 1_000) throw new Error('it still acts after a second');
    if (!response.ok) return response;
    await response.text();
    return null;
  });
}

test('a session needs the account in a header, and says which one is missing', async (t) => {
  const { client, linkId } = await createCaller();
  const cookie = client.cookieHeader;
  const without = await fetch(`${stack.url}/v1/users/profile`, { headers: { cookie } });
  t.is(without.headers.get('www-authenticate'), 'Bearer realm="model-gateway"');
  await checkRefusal(t, without, [401, 'invalid_api_key', /no API key.*X-Api-Account/]);
  const noCookie = await fetch(`${stack.url}/v1/users/profile`, {
    headers: { 'x-api-account': String(linkId) },
  });
  await checkRefusal(t, noCookie, [401, 'unauthenticated', /no session cookie/]);
  await checkRefusal(t, await fetch(`${stack.url}/v1/users/profile`), [
    401,
    'invalid_api_key',
    /^The request has no API key\. Send it as "Authorization: Bearer <API_KEY>"\.$/,
  ]);
});

test("unknown accounts, other users' accounts and malformed ids are not found", async (t) => {
  const { client } = await createCaller();
  const other = await createCaller();
  for (const id of [other.linkId, 1]) {
    const refused = await client.requestFor(id, 'POST', chatPath, chat);
    await checkRefusal(t, refused, [404, 'not_found', new RegExp(`no account ${id}\\.`)]);
  }
  for (const id of ['', '0', '01', '1e3', '-1', '9'.repeat(400), other.account.id]) {
    const refused = await client.requestFor(1, 'GET', '/jobs', undefined, { 'x-api-account': id });
    await checkRefusal(t, refused, [404, 'not_found', /X-Api-Account is not the id of an account/]);
  }
});

test('a call that may change something needs the CSRF token, which a read does not', async (t) => {
  const { client, linkId } = await createCaller();
  for (const token of ['', 'wrong', client.csrfToken!.slice(0, -1)]) {
    const headers = { 'x-csrf-token': token };
    const refused = await client.requestFor(linkId, 'POST', chatPath, chat, headers);
    await checkRefusal(t, refused, [403, 'csrf_failed', /X-CSRF-Token header is (missing|incorrect)/]);
  }
  client.csrfToken = null;
  t.is((await client.requestFor(linkId, 'GET', '/users/profile')).status, 200);
  await checkRefusal(t, await client.requestFor(linkId, 'DELETE', '/files/file-1'), [
    403,
    'csrf_failed',
    /missing/,
  ]);
});

test('pages of other origins get nothing with a session, whatever they send, although CORS allows all of them', async (t) => {
  const { client, linkId } = await createCaller();
  const origin = 'https://elsewhere.example';
  for (const [method, path, body] of [
    ['GET', '/users/profile', undefined],
    ['POST', chatPath, chat],
  ] as const) {
    const refused = await client.requestFor(linkId, method, path, body, { origin });
    t.false(refused.headers.has('access-control-allow-credentials'));
    await checkRefusal(t, refused, [403, 'origin_refused', /elsewhere\.example/]);
  }
  const preflight = await fetch(`${stack.url}/v1${chatPath}`, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'x-api-account,x-csrf-token',
    },
  });
  // With `*`, and without this header, browsers send no call with credentials.
  t.is(preflight.headers.get('access-control-allow-origin'), '*');
  t.false(preflight.headers.has('access-control-allow-credentials'));
  const own = await client.requestFor(linkId, 'POST', chatPath, chat, { origin: stack.url });
  t.is(own.status, 200);
});

test('a session that has expired says so, and one that has ended stops acting within a second', async (t) => {
  const { client, linkId, userId } = await createCaller();
  t.is((await client.requestFor(linkId, 'GET', '/jobs')).status, 200);
  await webStoresOf(stack).sessions.revokeAll(userId);
  const ended = await waitForRefusal(() => client.requestFor(linkId, 'POST', chatPath, chat));
  await checkRefusal(t, ended, [401, 'unauthenticated', /session has ended/]);
  client.cookies.delete('mg_session');
  await checkRefusal(t, await client.requestFor(linkId, 'POST', chatPath, chat), [
    401,
    'unauthenticated',
    /session cookie has expired\. Refresh the session/,
  ]);
  client.cookies.set('mg_session', 'x'.repeat(86));
  await checkRefusal(t, await client.requestFor(linkId, 'GET', '/jobs'), [401, 'unauthenticated', /ended/]);
});

test('an account that is unlinked, or whose user is banned, stops acting within a second', async (t) => {
  const { client, linkId, userId } = await createCaller();
  t.is((await client.requestFor(linkId, 'GET', '/users/profile')).status, 200);
  await webStoresOf(stack).links.delete(userId, linkId);
  const unlinked = await waitForRefusal(() => client.requestFor(linkId, 'GET', '/users/profile'));
  await checkRefusal(t, unlinked, [404, 'not_found', /no account/]);

  const banned = await createCaller();
  t.is((await banned.client.requestFor(banned.linkId, 'GET', '/jobs')).status, 200);
  await webStoresOf(stack).users.ban(banned.userId, 'a test');
  const refused = await waitForRefusal(() => banned.client.requestFor(banned.linkId, 'GET', '/jobs'));
  await checkRefusal(t, refused, [401, 'unauthenticated', /ended/]);
});

test('a session that ends while the body arrives is not admitted', async (t) => {
  const { client, linkId, userId, account } = await createCaller();
  const body = JSON.stringify(chat);
  const upload = request(`${stack.url}/v1${chatPath}`, {
    method: 'POST',
    headers: {
      cookie: client.cookieHeader,
      'x-csrf-token': client.csrfToken!,
      'x-api-account': String(linkId),
      'content-type': 'application/json',
      'content-length': body.length,
      expect: '100-continue',
    },
  });
  upload.flushHeaders();
  await once(upload, 'continue');
  await webStoresOf(stack).sessions.revokeAll(userId);
  await (await waitForRefusal(() => client.requestFor(linkId, 'GET', '/jobs'))).text();
  upload.end(body);
  const [response] = (await once(upload, 'response')) as [IncomingMessage];
  const { error } = JSON.parse(await text(response)) as ErrorBody;
  t.is(response.statusCode, 401);
  t.is(error.code, 'unauthenticated');
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
});

test('an account is restricted with a session as with its key', async (t) => {
  const { client, linkId, account, address } = await createCaller();
  const call = (): Promise<Response> => client.requestFor(linkId, 'POST', chatPath, chat);
  const read = (): Promise<Response> => client.requestFor(linkId, 'GET', '/jobs');
  await changeSettings(stack, account.id, { models: ['demo-svg-image'] });
  await checkRefusal(t, await call(), [403, 'model_not_allowed', /model/]);
  await changeSettings(stack, account.id, { models: null, addresses: ['192.0.2.1'] });
  await checkRefusal(t, await call(), [403, 'address_not_allowed', new RegExp(address)]);
  const listed = await waitFor('the list of addresses to apply', async () => {
    const response = await read();
    return response.ok ? (await response.text(), null) : response;
  });
  await checkRefusal(t, listed, [403, 'address_not_allowed', new RegExp(address)]);
  await changeSettings(stack, account.id, { addresses: null, expiresAt: new Date(Date.now() - 1_000) });
  await checkRefusal(t, await call(), [403, 'key_expired', /expired/]);
  await changeSettings(stack, account.id, {
    expiresAt: null,
    budget: { amountNano: 1n, period: 'daily' },
  });
  await checkRefusal(t, await call(), [402, 'budget_exceeded', /budget/i]);
  await changeSettings(stack, account.id, { budget: null });
  t.is((await call()).status, 200);
  await banAccount(stack, account.id);
  await checkRefusal(t, await call(), [403, 'account_banned', /banned/]);
  await checkRefusal(t, await client.requestFor(linkId, 'GET', '/users/profile'), [
    403,
    'account_banned',
    /banned/,
  ]);
});

test('requests per minute are counted for the account, whether they come with a session or its key', async (t) => {
  const { client, linkId, account } = await createCaller({ rpm: 2 });
  t.is((await stack.post(`/v1${chatPath}`, account.apiKey, chat)).status, 200);
  const second = await client.requestFor(linkId, 'POST', chatPath, chat);
  t.is(second.headers.get('x-ratelimit-remaining-requests'), '0');
  t.is((await client.requestFor(linkId, 'POST', chatPath, chat)).status, 429);
  t.is((await stack.post(`/v1${chatPath}`, account.apiKey, chat)).status, 429);
});

test('with an Authorization header, the key is used and the session ignored', async (t) => {
  const { client, linkId } = await createCaller();
  const other = await stack.createAccount({ balance: '7' });
  const authorization = `Bearer ${other.apiKey}`;
  client.csrfToken = null;
  const profile = await client.requestFor(linkId, 'GET', '/users/profile', undefined, { authorization });
  t.is(((await profile.json()) as { balance: number }).balance, 7);
  t.is((await client.requestFor(linkId, 'POST', chatPath, chat, { authorization })).status, 200);
  const wrong = { authorization: `Bearer mg-${'x'.repeat(43)}` };
  const refused = await client.requestFor(linkId, 'GET', '/users/profile', undefined, wrong);
  await checkRefusal(t, refused, [401, 'invalid_api_key', /key/]);
});

test('redeeming a code and replacing the key take only the key, and name what a session uses', async (t) => {
  const { client, linkId, account } = await createCaller();
  const before = await stack.readAccount(account.id);
  await checkRefusal(t, await client.requestFor(linkId, 'POST', '/users/redeem', { code: 'x' }), [
    401,
    'invalid_api_key',
    /With a session, use POST \/v1\/web\/api-accounts\/\{account_id\}\/redeem/,
  ]);
  await checkRefusal(t, await client.requestFor(linkId, 'PUT', '/users/regenerate_api_key'), [
    401,
    'invalid_api_key',
    /With a session, use PUT \/v1\/web\/api-accounts\/\{account_id\}\/regenerate-api-key/,
  ]);
  t.is((await stack.readAccount(account.id)).keyHash, before.keyHash);
});

const fundsOf = ({ balanceNano, reservedNano, freeRequests }: HotAccount) => ({
  balanceNano,
  reservedNano,
  freeRequests,
});

/** What a call cost its account and what was logged of it, without what differs between any two calls. */
async function measure(t: ExecutionContext, { account, address }: Caller, call: () => Promise<Response>) {
  const response = await call();
  t.true(response.ok, `${response.status}`);
  const requestId = response.headers.get('x-request-id')!;
  await response.arrayBuffer();
  const row = await findRow(stack, requestId);
  t.like(row, { accountId: account.id, userIp: address });
  const times = {
    at: null,
    settledAt: null,
    durationMs: null,
    billedMs: null,
    callStartsMs: null,
    firstTokenMs: row.firstTokenMs === null,
    calls: row.calls?.length,
  };
  return {
    row: { ...row, ...times, _id: null, accountId: null, userIp: null },
    funds: fundsOf(await stack.readAccount(account.id)),
  };
}

const createForm = (): FormData => {
  const form = new FormData();
  form.append('model', 'demo-image-edit');
  form.append('prompt', 'a red hat');
  form.append('image', new File([Buffer.from(tinyPng, 'base64')], 'cat.png', { type: 'image/png' }));
  return form;
};

test('a streamed chat, an edited image in a form and an embedding are charged and logged the same as with the key', async (t) => {
  const calls = [
    [chatPath, () => ({ ...chat, stream: true })],
    ['/images/edits', createForm],
    ['/images/generations', () => ({ model: 'demo-svg-image', prompt: 'a lighthouse', size: '256x256' })],
    ['/embeddings', () => ({ model: 'use-lite-en-512', input: 'hello' })],
  ] as const;
  const withKey = await createCaller();
  const withSession = await createCaller();
  for (const [path, createBody] of calls) {
    const expected = await measure(t, withKey, () => {
      const headers = { authorization: `Bearer ${withKey.account.apiKey}` };
      return withKey.client.requestFor(withKey.linkId, 'POST', path, createBody(), headers);
    });
    const { client, linkId } = withSession;
    const got = await measure(t, withSession, () => client.requestFor(linkId, 'POST', path, createBody()));
    t.deepEqual(got, expected, path);
  }
  const { client, linkId } = withSession;
  const logs = await client.requestFor(linkId, 'GET', '/users/request_logs');
  t.is(((await logs.json()) as { total_count: number }).total_count, calls.length);
  const stream = await client.requestFor(linkId, 'POST', chatPath, { ...chat, stream: true });
  t.regex(stream.headers.get('content-type')!, /event-stream/);
  t.true((await readSse(stream)).isDone);
});

test('a job is created, followed and deleted, and a batch runs from an uploaded file', async (t) => {
  const { client, linkId } = await createCaller();
  const created = await client.requestFor(linkId, 'POST', chatPath, chat, { prefer: 'respond-async' });
  t.is(created.status, 202);
  const { id } = (await created.json()) as { id: string };
  const events = await client.requestFor(linkId, 'GET', `/jobs/${id}/events`);
  t.regex(await events.text(), /event: succeeded/);
  const cancelled = await client.requestFor(linkId, 'DELETE', `/jobs/${id}`);
  t.is(((await cancelled.json()) as { status: string }).status, 'succeeded');
  t.is((await client.requestFor(linkId, 'DELETE', `/jobs/${id}/response`)).status, 204);

  const form = new FormData();
  const line = { custom_id: 'one', method: 'POST', url: '/v1/chat/completions', body: chat };
  form.append('purpose', 'batch');
  form.append('file', new File([JSON.stringify(line)], 'lines.jsonl'));
  const uploaded = await client.requestFor(linkId, 'POST', '/files', form);
  const file = (await uploaded.json()) as { id: string };
  t.is(uploaded.status, 200, JSON.stringify(file));
  const batch = await client.requestFor(linkId, 'POST', '/batches', {
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  const { id: batchId } = (await batch.json()) as { id: string };
  const output = await waitFor('the batch', async () => {
    const response = await client.requestFor(linkId, 'GET', `/batches/${batchId}`);
    const { status, output_file_id: fileId } = (await response.json()) as Record<string, string>;
    return status === 'completed' ? fileId! : null;
  });
  const content = await client.requestFor(linkId, 'GET', `/files/${output}/content`);
  t.is((JSON.parse(await content.text()) as { custom_id: string }).custom_id, 'one');
});

test('me returns the CSRF token of the session without changing it, and a refresh replaces the token', async (t) => {
  const { client, linkId } = await createCaller();
  const token = async (): Promise<string | null> =>
    (await callWeb<{ csrf_token: string | null }>(client, 'GET', '/auth/me')).body.csrf_token;
  t.is(await token(), client.csrfToken);
  t.is(await token(), client.csrfToken);
  const before = client.csrfToken!;
  const { csrf_token: refreshed } = await client.keepResult(await client.request('POST', '/auth/refresh'));
  t.not(refreshed, before);
  t.is(await token(), refreshed);
  const headers = { 'x-csrf-token': before };
  t.is((await client.requestFor(linkId, 'POST', chatPath, chat, headers)).status, 403);
  t.is((await client.requestFor(linkId, 'POST', chatPath, chat)).status, 200);
});
