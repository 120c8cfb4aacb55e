import { randomUUID } from 'node:crypto';
import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { describeLinks } from '../../../api/account-area/endpoints/linked-account.ts';
import type { Services } from '../../../api/services.ts';
import { linkByKey } from '../../../api/account-area/link-by-key.ts';
import { createApiKey, maskApiKey } from '../../../shared/accounts/credentials.ts';
import type { ApiAccount } from '../../../api/contract/web-accounts.ts';
import type { HotAccount } from '../../../shared/accounts/hot-account-store.ts';
import type { WebLink } from '../../../shared/account-area/web-models.ts';
import { maxLinks } from '../../../shared/account-area/link-store.ts';
import { callApi, type ErrorBody } from '../../support/call-api.ts';
import type { TestStack } from '../../support/stack.ts';
import {
  banAccount,
  callWeb,
  createSeparateUser,
  linkAccount,
  startWebStack,
  type WebResponse,
} from '../../support/web-accounts.ts';
import { WebClient, webStoresOf } from '../../support/web-client.ts';

/** Only users with an account's key can link the account, and only one user at a time. */

let stack: TestStack;

test.before(async () => {
  stack = await startWebStack({ workers: [] });
});
test.after.always(() => stack.close());

const link = (client: WebClient, apiKey: unknown, label?: unknown) =>
  callWeb<ApiAccount>(client, 'POST', '/api-accounts/link', {
    api_key: apiKey,
    ...(label === undefined ? {} : { label }),
  });
const list = async (client: WebClient) => (await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts')).body;

test('a linked account is shown with its exact balance, masked key and default label, on its own and in the list', async (t) => {
  const { client } = await createSeparateUser(stack);
  const { id, apiKey } = await stack.createAccount({
    balance: '8999999.999999999',
    freeRequests: 2,
    rpm: 77,
  });
  const { status, body } = await link(client, apiKey);
  t.is(status, 201);
  t.true(Number.isInteger(body.id) && body.id >= 1 && body.id < 2 ** 31);
  t.true(Number.isInteger(body.key_id));
  t.deepEqual(body, {
    id: body.id,
    user_balance_id: id,
    label: 'Основной',
    is_primary: true,
    balance: '8999999.999999999',
    total_balance_added: '8999999.999999999',
    free_requests: 2,
    user_type: 'default',
    ban: false,
    key_id: body.key_id!,
    key_label: null,
    key_masked: maskApiKey(apiKey),
    key_active: true,
    average_rpm: 0,
    requests_per_minute: 77,
    total_cost_request_last_hour: '0',
    budget: null,
    models: null,
    low_balance: null,
    limits: { budget: null, models: null, addresses: null, expires_at: null, tokens_per_minute: null },
  });
  t.regex(body.key_masked!, /^mg-[\w-]{4}…[\w-]{4}$/);
  t.deepEqual(await list(client), [body]);
  t.deepEqual((await callWeb<ApiAccount>(client, 'GET', `/api-accounts/${body.id}`)).body, body);
});

test('the smallest amount and zero are decimals without an exponent', async (t) => {
  const { client } = await createSeparateUser(stack);
  for (const balance of ['0.000000001', '0', '100']) {
    const account = await linkAccount(client, await stack.createAccount({ balance }));
    t.is(account.balance, balance);
  }
});

test('a user without accounts has an empty list', async (t) => {
  t.deepEqual(await list((await createSeparateUser(stack)).client), []);
});

test('renaming an account changes only its label', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const before = await linkAccount(client, await stack.createAccount(), 'Работа');
  t.is(before.label, 'Работа');
  for (const label of ['x', 'Ж'.repeat(80), '🦊'.repeat(80), '<b>"&\\']) {
    const { status, body } = await callWeb<ApiAccount>(client, 'PATCH', `/api-accounts/${before.id}`, {
      label,
    });
    t.is(status, 200);
    t.deepEqual(body, { ...before, label });
    t.deepEqual(await list(client), [{ ...before, label }]);
  }
  const events = await webStoresOf(stack).audit.list(user._id, 10);
  t.is(events.filter(({ action, notice }) => action === 'label-changed' && notice === 'none').length, 4);
});

test('a label that is empty, missing, too long or not a string is a 422 for that field, and changes nothing', async (t) => {
  const { client } = await createSeparateUser(stack);
  const account = await linkAccount(client, await stack.createAccount());
  const { apiKey } = await stack.createAccount();
  for (const label of ['', 'x'.repeat(81), 7, null]) {
    for (const response of [
      await callWeb(client, 'PATCH', `/api-accounts/${account.id}`, { label }),
      await callWeb(client, 'POST', '/api-accounts/link', { api_key: apiKey, label }),
      await callWeb(client, 'POST', '/api-accounts/first', { label }),
    ]) {
      t.like(response, { status: 422, body: { error: { code: 'validation_failed' } } });
      t.like(response.body.detail, [{ loc: ['body', 'label'] }]);
    }
  }
  t.like(await callWeb(client, 'PATCH', `/api-accounts/${account.id}`, {}), { status: 422 });
  t.deepEqual(await list(client), [account]);
});

test('in every operation, an account of another user gives the same 404 as one that never existed', async (t) => {
  const [owner, other] = [await createSeparateUser(stack), await createSeparateUser(stack)];
  const account = await linkAccount(owner.client, await stack.createAccount());
  const email = other.user.email;
  const confirmation = { challenge_id: '7d0b6a53-9c1e-4a7e-8f1b-0b2f6f9b7c42', code: '123456' };
  const calls: [string, string, unknown?][] = [
    ['GET', ''],
    ['PATCH', '', { label: 'mine' }],
    ['DELETE', '', confirmation],
    ['POST', '/unlink/request-code', { email }],
    ['POST', '/reveal/request-code', { email }],
    ['POST', '/reveal', confirmation],
    ['POST', '/regenerate-api-key/request-code', { email }],
    ['PUT', '/regenerate-api-key', confirmation],
    ['POST', '/redeem', { code: '2222-2222-2222-2222-2222' }],
    ['GET', '/request-logs'],
    ['GET', '/refill-logs'],
    ['GET', '/stats'],
  ];
  for (const [method, path, body] of calls) {
    const foreign = await callWeb(other.client, method, `/api-accounts/${account.id}${path}`, body);
    t.is(foreign.status, 404, path);
    t.is(foreign.body.error.code, 'not_found');
    const unknown = await callWeb(other.client, method, `/api-accounts/1${path}`, body);
    t.is(unknown.status, 404);
    t.is(unknown.body.error.message, foreign.body.error.message.replaceAll(String(account.id), '1'));
  }
  t.deepEqual(await list(owner.client), [account]);
});

test('after ten wrong keys in an hour no further key of that user is checked, and other users on the network are unaffected', async (t) => {
  const { client, address } = await createSeparateUser(stack);
  const neighbour = await createSeparateUser(stack, { address });
  const { apiKey } = await stack.createAccount();
  for (const wrongKey of [...Array.from({ length: 8 }, createApiKey), `${apiKey}x`, 'not a key at all']) {
    const { status, body } = await callWeb(client, 'POST', '/api-accounts/link', { api_key: wrongKey });
    t.is(status, 401);
    t.is(body.error.code, 'invalid_api_key');
  }
  const moved = await createSeparateUser(stack);
  for (const [name, value] of client.cookies) moved.client.cookies.set(name, value);
  moved.client.csrfToken = client.csrfToken;
  for (const limited of [client, moved.client]) {
    const response = await callWeb(limited, 'POST', '/api-accounts/link', { api_key: apiKey });
    t.is(response.status, 429);
    t.is(response.body.error.code, 'too_many_attempts');
    const retryAfter = Number(response.headers.get('retry-after'));
    t.true(Number.isInteger(retryAfter) && retryAfter > 3_000 && retryAfter <= 3_600);
  }
  t.is((await link(neighbour.client, apiKey)).status, 201);
});

test('valid keys, malformed keys and keys already linked do not count as wrong keys', async (t) => {
  const { client } = await createSeparateUser(stack);
  for (let i = 0; i < 9; i++) t.is((await link(client, createApiKey())).status, 401);
  let lastKey = '';
  for (let i = 0; i < 12; i++) {
    const { apiKey } = await stack.createAccount();
    t.is((await link(client, apiKey)).status, 201);
    t.is((await link(client, apiKey)).status, 409);
    lastKey = apiKey;
  }
  for (const notAKey of ['x'.repeat(9), 'x'.repeat(513), null, 7]) {
    const response = await callWeb(client, 'POST', '/api-accounts/link', { api_key: notAKey });
    t.is(response.status, 422);
    t.like(response.body.detail, [{ loc: ['body', 'api_key'] }]);
  }
  t.is((await link(client, createApiKey())).status, 401);
  t.is((await link(client, lastKey)).status, 429);
});

test('a linked account cannot be linked by another user, or twice', async (t) => {
  const [owner, other] = [await createSeparateUser(stack), await createSeparateUser(stack)];
  const account = await stack.createAccount();
  const linked = await linkAccount(owner.client, account);
  const responses = [
    await callWeb(owner.client, 'POST', '/api-accounts/link', { api_key: account.apiKey }),
    await callWeb(other.client, 'POST', '/api-accounts/link', { api_key: account.apiKey }),
  ];
  for (const { status, body } of responses) {
    t.is(status, 409);
    t.is(body.error.code, 'already_linked');
    for (const { email, _id } of [owner.user, other.user])
      t.notRegex(JSON.stringify(body), new RegExp(`${email}|${_id}`), 'the owner is not revealed');
  }
  t.regex(responses[0]!.body.error.message, /^You have already linked this account/);
  t.regex(responses[1]!.body.error.message, /^This account is linked to another user/);
  t.deepEqual(await list(owner.client), [linked]);
  t.deepEqual(await list(other.client), []);
});

/** Makes one call for each reason to reject a call before its operation starts. */
async function collectEarlyRefusals({
  client,
  user,
  address,
}: Awaited<ReturnType<typeof createSeparateUser>>): Promise<WebResponse<ErrorBody>[]> {
  const { users, sessions } = webStoresOf(stack);
  const call = (headers: Record<string, string>, method = 'POST', path = '/auth/logout-others') =>
    callWeb(new WebClient(stack.url, { headers: { 'x-forwarded-for': address, ...headers } }), method, path);
  const cookie = client.cookieHeader;
  const refresh = `mg_refresh=${client.cookies.get('mg_refresh')}`;
  const responses = [
    await call({ cookie, origin: 'https://evil.example' }),
    await call({ cookie }),
    await call({ cookie, 'x-csrf-token': 'x' }),
    await call({}),
    await call({ cookie: 'mg_session=x' }),
    await call({ cookie: refresh }),
    await call({}, 'POST', '/auth/refresh'),
  ];
  await callWeb(client, 'POST', '/auth/refresh');
  responses.push(await call({ cookie: refresh }, 'POST', '/auth/refresh'));
  responses.push(await call({ cookie: refresh }, 'POST', '/auth/refresh'));
  const { accessToken } = await sessions.start({
    userId: user._id,
    rememberMe: false,
    device: { osName: 'Linux', browserName: 'Firefox', deviceType: 'desktop' },
    address,
  });
  await users.ban(user._id, 'a test');
  return [...responses, await call({ cookie: `mg_session=${accessToken}` }, 'GET', '/auth/me')];
}

test('errors that users see on a page are entirely in Russian', async (t) => {
  const [owner, other] = [await createSeparateUser(stack), await createSeparateUser(stack)];
  const account = await stack.createAccount();
  await linkAccount(owner.client, account);
  const unknownSessionId = '7d0b6a53-9c1e-4a7e-8f1b-0b2f6f9b7c42';
  const responses = [
    await link(owner.client, account.apiKey),
    await link(other.client, account.apiKey),
    await link(other.client, createApiKey()),
    await callWeb(other.client, 'GET', '/api-accounts/1'),
    await callWeb(other.client, 'DELETE', `/auth/sessions/${unknownSessionId}`),
    ...(await collectEarlyRefusals(other)),
  ];
  t.deepEqual(
    responses.map(({ status }) => status),
    [409, 409, 401, 404, 404, 403, 403, 403, 401, 401, 401, 401, 401, 401, 401],
  );
  for (const { body } of responses) {
    const { message_ru: russian } = (body as unknown as ErrorBody).detail as { message_ru: string };
    t.regex(russian, /^[А-Я]/);
    t.notRegex(russian, /по-английски/);
  }
});

test('a key may be pasted with surrounding whitespace', async (t) => {
  const { client } = await createSeparateUser(stack);
  const { apiKey } = await stack.createAccount();
  t.is((await link(client, ` ${apiKey}\n`)).status, 201);
});

test('each issue of a 422 has a message in Russian and in English', async (t) => {
  const { client } = await createSeparateUser(stack);
  const wrongAttempt = { challenge_id: '7d0b6a53-9c1e-4a7e-8f1b-0b2f6f9b7c42', code: '000000' };
  const responses = [
    await callWeb(client, 'POST', '/auth/verify-code', wrongAttempt),
    await callWeb(client, 'POST', '/auth/request-code', { email: 'nobody' }),
    await callWeb(client, 'POST', '/auth/request-code', { email: 'a@example.com', purpose: 'other' }),
    await callWeb(client, 'PATCH', '/auth/me', { timezone: 'Mars/Base' }),
    await callWeb(client, 'POST', '/api-accounts/link', { api_key: 'short', label: ' ' }),
  ];
  for (const { status, body } of responses) {
    t.is(status, 422);
    const issues = body.detail as Record<string, string>[];
    for (const { msg, message_ru: russian, message_en: english } of issues) {
      t.regex(russian!, /^[А-Яа-я]/);
      t.notRegex(russian!, /по-английски/);
      t.is(english, msg!);
    }
  }
});

test('if several users link one key in parallel, one gets a 201, and the others get a 409 with the right reason', async (t) => {
  const users = await Promise.all(Array.from({ length: 5 }, () => createSeparateUser(stack)));
  const { apiKey } = await stack.createAccount();
  const responses = await Promise.all(
    [...users, ...users].map(({ client }) =>
      callWeb(client, 'POST', '/api-accounts/link', { api_key: apiKey }),
    ),
  );
  t.is(responses.filter(({ status }) => status === 201).length, 1);
  const rejections = responses.filter(({ status }) => status !== 201);
  t.true(rejections.every(({ status, body }) => status === 409 && body.error.code === 'already_linked'));
  const texts = rejections.map(({ body }) => body.error.message);
  t.is(texts.filter((text) => text.startsWith('You have already linked this account')).length, 1);
  t.is(texts.filter((text) => text.startsWith('This account is linked to another user')).length, 8);
  const lists = await Promise.all(users.map(({ client }) => list(client)));
  t.is(lists.flat().length, 1);
});

test('a banned account can be linked and is shown as banned, with an inactive key', async (t) => {
  const { client } = await createSeparateUser(stack);
  const { id, apiKey } = await stack.createAccount();
  await banAccount(stack, id);
  const { status, body } = await link(client, apiKey);
  t.is(status, 201);
  t.like(body, { ban: true, key_active: false });
  t.like(await list(client), [{ ban: true, key_active: false }]);
});

test('an account that no longer exists is omitted from the list, and reading it is a 404', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const { links } = webStoresOf(stack);
  const deleted = await links.create({ userId: user._id, accountId: randomUUID(), label: 'Gone' });
  const existing = await linkAccount(client, await stack.createAccount());
  const listed = await callWeb<ApiAccount[]>(client, 'GET', '/api-accounts');
  t.is(listed.status, 200);
  t.deepEqual(
    listed.body.map(({ id }) => id),
    [existing.id],
  );
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['GET', '/stats', undefined],
    ['PATCH', '', { label: 'Still gone' }],
    ['POST', '/redeem', { code: 'ABCD-EFGH-JKLM-NPQR' }],
    ['POST', '/reveal/request-code', { email: user.email }],
    ['POST', '/regenerate-api-key/request-code', { email: user.email }],
  ] as const) {
    const response = await callWeb(client, method, `/api-accounts/${deleted._id}${path}`, body);
    t.is(response.status, 404, `${method} ${path}`);
    t.is(response.body.error.code, 'not_found');
  }
});

test('the oldest account is the primary one, and when it is unlinked the next oldest becomes primary', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const linked: ApiAccount[] = [];
  for (const label of ['one', 'two', 'three'])
    linked.push(await linkAccount(client, await stack.createAccount(), label));
  const primaries = async () => (await list(client)).map((one) => [one.label, one.is_primary]);
  t.deepEqual(await primaries(), [
    ['one', true],
    ['two', false],
    ['three', false],
  ]);
  const third = await callWeb<ApiAccount>(client, 'GET', `/api-accounts/${linked[2]!.id}`);
  t.false(third.body.is_primary);
  await webStoresOf(stack).links.delete(user._id, linked[0]!.id);
  t.deepEqual(await primaries(), [
    ['two', true],
    ['three', false],
  ]);
  await webStoresOf(stack).links.delete(user._id, linked[1]!.id);
  t.deepEqual(await primaries(), [['three', true]]);
});

test('a replaced key can no longer link the account, and the new key can', async (t) => {
  const { client } = await createSeparateUser(stack);
  const { apiKey } = await stack.createAccount();
  const replaced = await callApi<{ new_api_key: string }>(
    stack.url,
    apiKey,
    'PUT',
    '/users/regenerate_api_key',
  );
  t.is((await link(client, apiKey)).status, 401);
  t.is((await link(client, replaced.body.new_api_key)).status, 201);
});

test('a user has at most a hundred accounts, even if many are linked simultaneously', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const { links } = webStoresOf(stack);
  const almostAll = Array.from({ length: maxLinks - 1 }, (_, i) => ({
    userId: user._id,
    accountId: `${user._id}-${i}`,
    label: 'x',
  }));
  for (const one of almostAll) await links.create(one);
  const accounts = await Promise.all(Array.from({ length: 4 }, () => stack.createAccount()));
  const responses = await Promise.all(
    accounts.map(({ apiKey }) => callWeb(client, 'POST', '/api-accounts/link', { api_key: apiKey })),
  );
  const rejections = responses.filter(({ status }) => status !== 201);
  t.true(rejections.length >= 3, 'every request that finds too many links reverts its own');
  for (const { status, body } of rejections) {
    t.is(status, 422);
    t.like(body.detail, [{ loc: ['body', 'api_key'] }]);
  }
  t.true((await links.list(user._id)).length <= maxLinks);
});

test('if a hundred listed accounts are missing from Redis, only a few are loaded at a time', async (t) => {
  const account = { balanceNano: 0n, totalAddedNano: 0n } as HotAccount;
  let loading = 0;
  let maxLoading = 0;
  const hotAccounts = {
    get: async (id: string) => {
      maxLoading = Math.max(maxLoading, ++loading);
      await new Promise((resolve) => setImmediate(resolve));
      loading -= 1;
      return { ...account, id };
    },
    readRecentUse: () => Promise.resolve({ requests: 0, costNano: 0n }),
  };
  const accounts = { findByIds: () => Promise.resolve([]) };
  const services = { hotAccounts, accounts, accountWaitMs: 3_000 } as unknown as Services;
  const links = Array.from({ length: maxLinks }, (_, i) => ({ _id: i + 1, accountId: `a${i}` }) as WebLink);
  const described = await describeLinks(services, links, links[0]);
  t.deepEqual(
    described.map(({ link, account: { id }, isPrimary }) => [link, id, isPrimary]),
    links.map((one, i) => [one, one.accountId, i === 0]),
  );
  t.true(maxLoading <= 8, `${maxLoading} were loaded at once`);
});

test('if the key cannot be verified a second time after linking, the account is not linked', async (t) => {
  const { user } = await createSeparateUser(stack);
  const { id: accountId, apiKey } = await stack.createAccount();
  const outage = new AppError('service_unavailable');
  const accounts = new Proxy(new AccountStore(stack.mongo.db, stack.config), {
    get: () => () => Promise.reject(outage),
  });
  const web = webStoresOf(stack);
  const newLink = { userId: user._id, accountId, label: 'x' };
  await t.throwsAsync(linkByKey({ accounts, web }, newLink, apiKey), { is: outage });
  t.is(await web.links.findByAccount(accountId), null);
});
