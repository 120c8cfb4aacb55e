import { randomUUID } from 'node:crypto';
import test from 'ava';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { adminTokenName } from '../../../shared/admin/admin-scope.ts';
import { deriveId, hashRequest } from '../../../shared/admin/once-for-ever.ts';
import { readAdmin } from '../../support/admin.ts';
import {
  callAdmin,
  codeOf,
  createToken,
  readAllPages,
  testAdminToken,
  type AdminResponse,
  type ListedPage,
} from '../../support/admin-api.ts';
import { callApi } from '../../support/call-api.ts';
import { startStack, useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { webStoresOf } from '../../support/web-client.ts';

/** Accounts in the admin API: what the command does, as a resource. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ workers: [], env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());

interface Account {
  readonly id: string;
  readonly name: string | null;
  readonly api_key: string;
  readonly [field: string]: unknown;
}

const call = <T = Account>(method: string, path: string, body?: unknown): Promise<AdminResponse<T>> =>
  callAdmin<T>(stack.url, testAdminToken, method, path, body);

const create = async (fields: object): Promise<Account> => (await call('POST', '/accounts', fields)).body;

const profileStatus = async (apiKey: string): Promise<number> =>
  (await callApi(stack.url, apiKey, 'GET', '/users/profile')).status;

test('an account is created with its money, limits and texts; its key is shown once and works', async (t) => {
  const created = await call('POST', '/accounts', {
    name: 'Anna Petrova',
    email: 'anna@example.com',
    note: 'pays by invoice',
    balance: 12.5,
    free_requests: 3,
    requests_per_minute: 600,
    user_type: 'partner',
  });
  t.is(created.status, 201);
  const { api_key: apiKey, ...account } = created.body;
  t.like(account, {
    name: 'Anna Petrova',
    email: 'anna@example.com',
    note: 'pays by invoice',
    balance: 12.5,
    free_requests: 3,
    requests_per_minute: 600,
    user_type: 'partner',
    banned: false,
  });
  t.is(await profileStatus(apiKey), 200);
  const shown = await call('GET', `/accounts/${account.id}`);
  t.deepEqual(shown.body, { ...account, link: null, user_id: null, user_email: null } as unknown as Account);
  t.deepEqual(
    await readAdmin(stack.env, 'account', 'show', account.id),
    shown.body,
    'the command shows the same',
  );
});

test('a list loads no account into Redis, and finds those that are banned', async (t) => {
  const own = await useStack(t, { workers: [], env: { ADMIN_TOKEN: testAdminToken } });
  const on = <T = Account>(method: string, path: string, body?: unknown) =>
    callAdmin<T>(own.url, testAdminToken, method, path, body);
  const created: string[] = [];
  for (const fields of [
    { name: 'Anna one', balance: 3, budget: { amount: 5, period: 'daily' }, models: ['demo-echo'] },
    { name: 'Anna two', balance: 4 },
    { name: 'Bob', balance: 5 },
  ])
    created.unshift((await on('POST', '/accounts', fields)).body.id);
  for (const id of created.slice(0, 2)) await on('POST', `/accounts/${id}/ban`, { reason: 'test' });
  const list = async (query: string) =>
    (await on<ListedPage<Account>>('GET', `/accounts?${query}`)).body.data.filter(({ id }) =>
      created.includes(id),
    );
  const loaded = await list('');
  t.deepEqual(
    loaded.map(({ id }) => id),
    created,
  );
  t.like(loaded[0], { balance: 5, reserved: 0, banned: true, ban_reason: 'test' });
  const idsOf = (rows: readonly Account[]) => rows.map(({ id }) => id);
  t.deepEqual(idsOf(await list('banned=true')), created.slice(0, 2));
  t.deepEqual(idsOf(await list('banned=false')), created.slice(2));
  t.deepEqual(idsOf(await list('search=anna&banned=true')), [created[1]]);
  t.is((await on('GET', '/accounts?banned=yes')).status, 422);

  // As after an idle month: Redis has none of them. A worker has written the ledger.
  await own.startWorker();
  const documents = own.mongo.db.collection<{ _id: string; balanceNano: bigint }>('accounts');
  await waitFor('the ledger', async () =>
    (await documents.find({ _id: { $in: created } }).toArray()).every(({ balanceNano }) => balanceNano > 0n),
  );
  const keys = created.map((id) => redisKeys.account(id));
  for (const key of keys) await own.redis.del(key);
  t.deepEqual(await list(''), loaded);
  for (const key of keys) t.is(await own.redis.exists(key), 0);
});

test('the refills of an account are listed at once, by pages, also by the command', async (t) => {
  const { id } = await create({ balance: 5 });
  for (const [key, amount] of [
    ['a', 1],
    ['b', 2],
    ['c', -3],
  ] as const)
    await callAdmin(
      stack.url,
      testAdminToken,
      'POST',
      `/accounts/${id}/credits`,
      { amount, note: key },
      {
        'idempotency-key': key,
      },
    );
  const rows = await readAllPages<Account>(stack.url, testAdminToken, `/accounts/${id}/refills`, 2);
  t.deepEqual(
    rows.map(({ amount, note, source, code }) => ({ amount, note, source, code })),
    [
      { amount: -3, note: 'c', source: 'operator', code: null },
      { amount: 2, note: 'b', source: 'operator', code: null },
      { amount: 1, note: 'a', source: 'operator', code: null },
      { amount: 5, note: null, source: 'operator', code: null },
    ],
  );
  t.true(rows.every(({ token }) => token === adminTokenName));
  t.deepEqual(await readAdmin(stack.env, 'account', 'refills', id), rows);
  const found = await call<{ data: Account[] }>('GET', `/accounts/${id}/refills?search=B`);
  t.deepEqual(
    found.body.data.map(({ note }) => note),
    ['b'],
  );
  t.is((await call('GET', `/accounts/${id}/refills?after=x`)).status, 422);
  t.is((await call('GET', '/accounts/none/refills')).status, 404);
});

test('an account without fields has the defaults', async (t) => {
  t.like(await call('POST', '/accounts', {}), {
    status: 201,
    body: { name: null, balance: 0, requests_per_minute: stack.config.defaultRpm, user_type: 'default' },
  });
});

test('with a key, an account is created once, by many calls at once or after an interruption, and keeps its key', async (t) => {
  const send = (key: string, fields: object) =>
    callAdmin<Account>(stack.url, testAdminToken, 'POST', '/accounts', fields, { 'idempotency-key': key });
  const fields = { name: 'Once', balance: 5 };
  const responses = await Promise.all(Array.from({ length: 10 }, () => send('customer 1', fields)));
  t.true(responses.every(({ status }) => status === 201));
  t.is(new Set(responses.map(({ body }) => `${body.id} ${body.api_key}`)).size, 1);
  t.is(responses.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1);
  const { id, api_key: apiKey } = responses[0]!.body;
  t.is(await profileStatus(apiKey), 200);
  t.is((await stack.readAccount(id)).balanceNano, 5_000_000_000n);
  for (const other of [{ balance: 6 }, { free_requests: 1 }, { name: 'Other' }, { email: 'a@b.example' }])
    t.is(codeOf(await send('customer 1', { ...fields, ...other })), 'idempotency_conflict');
  const same = await send('customer 1', { user_type: 'default', balance: 5, name: 'Once', email: null });
  t.is(same.body.id, id, 'the order of fields does not matter, and null is none');

  // As if the first call had died before it credited the account.
  const begun = deriveId('account', 'customer 2');
  const accounts = new AccountStore(stack.mongo.db, stack.config);
  await accounts.createWithId(begun, {
    name: 'Later',
    userType: 'default',
    requestsPerMinute: 60,
    creation: {
      amountNano: 7_000_000_000n,
      freeRequests: 0,
      requestHash: hashRequest({ name: 'Later', user_type: 'default' }),
    },
  });
  t.is(codeOf(await send('customer 2', { name: 'Later', balance: 8 })), 'idempotency_conflict');
  const finished = await send('customer 2', { name: 'Later', balance: 7 });
  t.like(finished.body, { id: begun, balance: 7 });
  t.is(await profileStatus(finished.body.api_key), 200);
});

test('an account that began without money is not credited by a repeated creation with an amount', async (t) => {
  const send = (fields: object) =>
    callAdmin<Account>(stack.url, testAdminToken, 'POST', '/accounts', fields, {
      'idempotency-key': 'empty',
    });
  const { id } = (await send({ name: 'Empty' })).body;
  const response = await send({ name: 'Empty', balance: 9_000_000 });
  t.like({ ...response, code: codeOf(response) }, { status: 409, code: 'idempotency_conflict' });
  t.is((await stack.readAccount(id)).balanceNano, 0n);
});

test('a repeated creation does not show a key that has replaced the first, and works with any token that may create', async (t) => {
  const token = await createToken(stack, `billing-${randomUUID().slice(0, 8)}`, 'billing');
  const send = (sender: string) =>
    callAdmin<Account>(
      stack.url,
      sender,
      'POST',
      '/accounts',
      { name: 'Kept' },
      { 'idempotency-key': 'kept' },
    );
  const { id, api_key: first } = (await send(token)).body;
  t.like((await send(testAdminToken)).body, { id, api_key: first });
  const { api_key: second } = (await call('POST', `/accounts/${id}/rotate-key`)).body;
  const repeated = await send(token);
  t.like(repeated, { status: 201, body: { id, name: 'Kept', api_key: null } });
  t.is(repeated.headers.get('idempotent-replayed'), 'true');
  t.is(await profileStatus(second), 200);
  const { body } = await call<ListedPage<object>>('GET', `/audit?resource=account:${id}`);
  t.like(body.data[0], {
    action: 'account.create',
    outcome: 'done',
    after: { replayed: true, api_key_shown: false },
  });
});

test('wrong fields are refused by name, and create nothing', async (t) => {
  const wrong = [
    { balance: -1 },
    { balance: 1e-10 },
    { requests_per_minute: 0 },
    { name: 'a\u0000b' },
    { name: '' },
  ];
  for (const body of wrong) {
    const response = await call<{ detail: { loc: string[] }[] }>('POST', '/accounts', body);
    t.is(response.status, 422);
    t.deepEqual(response.body.detail[0]!.loc, ['body', Object.keys(body)[0]!]);
  }
});

test('all accounts are listed newest first, on pages of any size', async (t) => {
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) ids.unshift((await create({ name: `Listed ${i}` })).id);
  for (const limit of [1, 2, 100]) {
    const listed = (await readAllPages<Account>(stack.url, testAdminToken, '/accounts', limit)).map(
      ({ id }) => id,
    );
    t.is(new Set(listed).size, listed.length);
    t.deepEqual(
      listed.filter((id) => ids.includes(id)),
      ids,
    );
  }
  const unknown = await call<ListedPage<Account>>('GET', `/accounts?after=${randomUUID()}`);
  t.deepEqual(unknown.body, { data: [], has_more: false, last_id: null });
});

test('accounts are found by the beginning of a word of name, address and note, and of the id, in any case', async (t) => {
  const mark = `q${randomUUID().slice(0, 8)}`;
  const one = await create({ name: `Zoë ${mark}-Smirnova`, email: `zoe.${mark}@Example.com` });
  const other = await create({ name: 'Boris', note: `like ${mark}suffix, but paid` });
  const search = async (text: string, limit = 1): Promise<string[]> =>
    (
      await readAllPages<Account>(
        stack.url,
        testAdminToken,
        `/accounts?search=${encodeURIComponent(text)}`,
        limit,
      )
    ).map(({ id }) => id);
  t.deepEqual((await search(mark)).toSorted(), [one.id, other.id].toSorted());
  t.deepEqual(await search(mark.toUpperCase(), 100), await search(mark, 100));
  t.deepEqual(await search(`${mark}-SMIR`), [one.id]);
  t.deepEqual(await search(`zoe.${mark}@EX`), [one.id]);
  t.deepEqual(await search(`smirnova ${mark}`), [one.id], 'all words must match');
  t.deepEqual(await search(`boris ${mark}`), [other.id]);
  t.deepEqual(await search(`nobody ${mark}`), []);
  t.deepEqual(await search(mark.slice(1)), [], 'the middle of a word');
  t.deepEqual(await search(one.id.slice(0, 13).toUpperCase()), [one.id]);
  t.deepEqual(await search(`${mark} ${one.id.slice(0, 8)}`), [one.id], 'a word and an id');
  t.deepEqual(await search(`zoë ${one.id}`), [one.id], 'a word and a longer id');
  t.deepEqual(await search(`boris ${one.id}`), []);
  t.deepEqual(
    (await readAdmin<Account[]>(stack.env, 'account', 'list', '--search', `${mark}suffix`)).map(
      ({ id }) => id,
    ),
    [other.id],
  );

  await call('PATCH', `/accounts/${one.id}`, { name: 'Renamed', email: null });
  t.deepEqual(await search(mark), [other.id], 'old words no longer match');
  t.deepEqual(await search('renam'), [one.id]);
});

test('a page of a search reads only a range of words, however many accounts match', async (t) => {
  const mark = `m${randomUUID().slice(0, 8)}`;
  const ids = await Promise.all(
    Array.from({ length: 25 }, async (_, i) => (await create({ name: `${mark}${i % 3} ${mark}x` })).id),
  );
  const found = await readAllPages<Account>(stack.url, testAdminToken, `/accounts?search=${mark}`, 7);
  t.deepEqual(found.map(({ id }) => id).toSorted(), ids.toSorted(), 'each account once');
});

test('settings change one by one; null clears a text, and the log has what they were', async (t) => {
  const { id } = await create({ name: 'Before', note: 'old' });
  const changed = await call('PATCH', `/accounts/${id}`, {
    name: 'After',
    note: null,
    requests_per_minute: 7,
    max_queued_jobs: 5,
    weight: 2,
  });
  const expected = { name: 'After', note: null, requests_per_minute: 7, max_queued_jobs: 5, weight: 2 };
  t.like(changed, { status: 200, body: expected });
  t.like((await call('GET', `/accounts/${id}`)).body, expected);
  t.is((await stack.readAccount(id)).requestsPerMinute, 7);
  const { body } = await call<ListedPage<object>>('GET', `/audit?resource=account:${id}`);
  t.like(body.data[0], {
    action: 'account.update',
    outcome: 'done',
    before: { name: 'Before', note: 'old' },
    after: { name: 'After', note: null, requests_per_minute: 7 },
  });
  t.is((await call('PATCH', `/accounts/${id}`, { weight: 1_000 })).status, 422);
  t.is((await call('PATCH', `/accounts/${id}`, {})).status, 200, 'nothing to change');
});

test('a ban needs a reason and applies at once, and an unban lifts it', async (t) => {
  const { id, api_key: apiKey } = await create({ balance: 1 });
  t.is((await call('POST', `/accounts/${id}/ban`, {})).status, 422);
  const chat = () =>
    stack.post(
      '/v1/embeddings',
      apiKey,
      { model: 'use-lite-en-512', input: 'a' },
      { 'x-request-timeout-ms': '1' },
    );
  t.like(await call('POST', `/accounts/${id}/ban`, { reason: 'stolen key' }), {
    status: 200,
    body: { banned: true, ban_reason: 'stolen key' },
  });
  t.is((await chat()).status, 403);
  t.like(await call('POST', `/accounts/${id}/unban`), {
    status: 200,
    body: { banned: false, ban_reason: null },
  });
  t.not((await chat()).status, 403);
});

test('a rotated key works and the old one does not, and the log shows only their masks', async (t) => {
  const { id, api_key: old } = await create({});
  const { status, body } = await call('POST', `/accounts/${id}/rotate-key`);
  t.is(status, 200);
  t.is(await profileStatus(body.api_key), 200);
  t.is(await profileStatus(old), 401);
  const events = (
    await call<ListedPage<{ action: string; after: object }>>('GET', `/audit?resource=account:${id}`)
  ).body;
  const text = JSON.stringify(events);
  for (const secret of [old, body.api_key]) t.false(text.includes(secret));
  t.like(events.data[0], {
    action: 'account.rotate-key',
    after: { key: `${body.api_key.slice(0, 7)}…${body.api_key.slice(-4)}` },
  });
});

test('a webhook secret is shown and replaced, which the log says without it, and needs the scope of changes', async (t) => {
  const { id } = await create({});
  const show = () => call<{ secret: string }>('GET', `/accounts/${id}/webhook-secret`);
  const rotate = <T>(query = '') => call<T>('POST', `/accounts/${id}/webhook-secret/rotate${query}`);
  const dryRun = async () =>
    (await rotate<{ effects: { previous_until: string | null } }>('?dry_run=true')).body.effects
      .previous_until;
  const first = await show();
  t.is(first.status, 200);
  t.is(first.headers.get('cache-control'), 'no-store');
  t.regex(first.body.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  t.is(await dryRun(), null);
  t.deepEqual((await show()).body, first.body);
  const { body: second } = await rotate<{ secret: string }>();
  t.not(second.secret, first.body.secret);
  t.deepEqual((await show()).body, { ...first.body, secret: second.secret });
  t.true(Date.parse((await dryRun())!) > Date.now() + 23 * 3_600_000);
  const { data } = (
    await call<ListedPage<{ action: string; after: object }>>('GET', `/audit?resource=account:${id}`)
  ).body;
  t.deepEqual(
    data.filter(({ action }) => action === 'account.webhook-secret').map(({ after }) => after),
    [{ shown: true }, { rotated: true }, { shown: true }, { created: true, shown: true }],
  );
  t.false(JSON.stringify(data).includes('whsec_'));
  const reader = await createToken(stack, `reader-${id}`, 'read');
  const refused = await callAdmin(stack.url, reader, 'GET', `/accounts/${id}/webhook-secret`);
  t.is(codeOf(refused), 'forbidden');
});

test('an account that a user has linked shows its user, and can be unlinked once', async (t) => {
  const { id } = await create({});
  const { users, links } = webStoresOf(stack);
  const email = `${randomUUID()}@example.com`;
  const { user } = await users.findOrCreate(email, { language: 'en' });
  await links.create({ userId: user._id, accountId: id, label: 'Mine' });
  t.like((await call('GET', `/accounts/${id}`)).body, { user_id: user._id, user_email: email });
  t.deepEqual((await call<object>('POST', `/accounts/${id}/unlink?dry_run=true`)).body, {
    dry_run: true,
    is_exact: true,
    effects: { user_id: user._id, email, label: 'Mine', other_accounts: 0 },
  });
  t.like(await call('POST', `/accounts/${id}/unlink`), {
    status: 200,
    body: { id, label: 'Mine', user_id: user._id, email },
  });
  t.is((await call('POST', `/accounts/${id}/unlink`)).status, 404);
  t.is((await call('POST', `/accounts/${id}/unlink?dry_run=true`)).status, 404);
  for (const resource of [`account:${id}`, `user:${user._id}`]) {
    const { data } = (await call<ListedPage<object>>('GET', `/audit?resource=${resource}`)).body;
    t.like(data[0], { action: 'user.unlink', resource: `user:${user._id}`, outcome: 'done' }, resource);
  }
});

test('an unknown account is a 404 for every operation on it', async (t) => {
  const id = randomUUID();
  for (const [method, suffix, body] of [
    ['GET', '', undefined],
    ['PATCH', '', { weight: 2 }],
    ['POST', '/ban', { reason: 'x' }],
    ['POST', '/unban', undefined],
    ['POST', '/rotate-key', undefined],
    ['POST', '/unlink', undefined],
    ['GET', '/webhook-secret', undefined],
    ['POST', '/webhook-secret/rotate', undefined],
    ['POST', '/webhook-secret/rotate?dry_run=true', undefined],
  ] as const) {
    const response = await call(method, `/accounts/${id}${suffix}`, body);
    t.is(response.status, 404, `${method} ${suffix}`);
    t.is(codeOf(response), 'not_found');
  }
});
