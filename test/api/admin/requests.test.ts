import test from 'ava';
import { createApiKey, createRefillCode } from '../../../shared/accounts/credentials.ts';
import { createTokenSecret } from '../../../shared/admin/admin-scope.ts';
import type { AdminRequest, AdminSpend, AdminSpendTotal } from '../../../shared/contract/admin-requests.ts';
import type { RequestLogDocument } from '../../../shared/ledger/ledger-store.ts';
import { SpendStore } from '../../../shared/ledger/spend-store.ts';
import { listVendorCharges, presentCharges } from '../../../shared/ledger/list-charges.ts';
import { readAdmin } from '../../support/admin.ts';
import { callAdmin, codeOf, readAllPages, testAdminToken, type ListedPage } from '../../support/admin-api.ts';
import { callApi } from '../../support/call-api.ts';
import { captureLog } from '../../support/captured-log.ts';
import { createJob } from '../../support/jobs.ts';
import { findRow } from '../../support/observe.ts';
import { requestRow, spendRow } from '../../support/request-rows.ts';
import { startStack, useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createWebUser } from '../../support/web-client.ts';

/** Requests and spending in the admin API. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(() => stack?.close());

const get = <T>(path: string, headers: Readonly<Record<string, string>> = {}) =>
  callAdmin<T>(stack.url, testAdminToken, 'GET', path, undefined, headers);

interface RequestPage extends ListedPage<AdminRequest> {
  readonly total: number | null;
  readonly has_exact_total: boolean;
}

const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'one two three' }] };
const today = new Date().toISOString().slice(0, 10);

async function sendChat(apiKey: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const response = await stack.post('/v1/chat/completions', apiKey, chat, headers);
  await response.arrayBuffer();
  const id = response.headers.get('x-request-id')!;
  await findRow(stack, id);
  return id;
}

test('a request says whether it had an Idempotency-Key, and how often it was replayed; old rows do not know', async (t) => {
  const account = await stack.createAccount();
  const keyed = await sendChat(account.apiKey, { 'idempotency-key': 'order 17' });
  const read = async (id: string) => (await get<AdminRequest>(`/requests/${id}`)).body;
  t.like(await read(keyed), { idempotency_key: true, replays: 0 });
  t.is(await sendChat(account.apiKey, { 'idempotency-key': 'order 17' }), keyed);
  t.is(await sendChat(account.apiKey, { 'idempotency-key': 'order 17' }), keyed);
  t.like(await read(keyed), { idempotency_key: true, replays: 2 });
  const conflict = { ...chat, max_tokens: 3 };
  const headers = { 'idempotency-key': 'order 17' };
  t.is((await stack.post('/v1/chat/completions', account.apiKey, conflict, headers)).status, 409);
  t.is((await read(keyed)).replays, 2, 'a conflict is no replay');
  t.is((await readAdmin<AdminRequest>(stack.env, 'request', 'show', keyed)).replays, 2);

  const plain = await sendChat(account.apiKey);
  t.like(await read(plain), { idempotency_key: false, replays: null });
  const page = await get<RequestPage>(`/requests?account=${account.id}`);
  t.deepEqual(
    page.body.data.map(({ id, idempotency_key, replays }) => [id, idempotency_key, replays]),
    [
      [plain, false, null],
      [keyed, true, null],
    ],
  );
  const log = await callApi<{ items: { request_id: string; idempotency_key: boolean }[] }>(
    stack.url,
    account.apiKey,
    'GET',
    '/users/request_logs',
  );
  t.deepEqual(
    log.body.items.map((row) => [row.request_id, row.idempotency_key]),
    [
      [plain, false],
      [keyed, true],
    ],
  );

  const old = requestRow(account.id, { ordinal: 3 });
  await stack.mongo.db.collection<RequestLogDocument>('request_logs').insertOne(old);
  t.like(await read(old._id), { idempotency_key: null, replays: null });
});

test('a request is found by its id, with its account, upstream and attempts; a built-in model costs the operator nothing', async (t) => {
  const account = await stack.createAccount();
  const id = await sendChat(account.apiKey);
  const { status, body } = await get<AdminRequest>(`/requests/${id}`);
  t.is(status, 200);
  t.like(body, { id, account: account.id, model: 'demo-echo', outcome: 'success', vendor_cost: 0 });
  t.is(body.upstream, body.attempts[0]!.upstream);
  t.is(body.margin, body.cost);
  t.is(body.queued_ms, body.attempts[0]!.started_ms);
  t.true(body.queued_ms! >= 0 && body.queued_ms! <= body.total_time! * 1_000);
  const { rates, quantities } = body;
  const sum = Object.entries(rates!).reduce(
    (total, [unit, rate]) => total + rate * quantities![unit as keyof typeof quantities],
    0,
  );
  t.is(Number((sum / 1_000_000).toFixed(9)), body.cost);
  t.is(body.vendor_rates, null);
  const unknown = await get('/requests/no-such-request');
  t.is(unknown.status, 404);
  t.is(codeOf(unknown), 'not_found');
});

test('requests are listed by account, outcome and time, in pages, with their total on the first one', async (t) => {
  const { id: accountId } = await stack.createAccount();
  const rows = Array.from({ length: 7 }, (_, i) =>
    requestRow(accountId, { at: new Date(Date.now() - i * 1_000), success: i !== 3 }),
  );
  await stack.mongo.db.collection<RequestLogDocument>('request_logs').insertMany(rows);
  const ids = rows.map(({ _id }) => _id);
  const listed = await readAllPages<AdminRequest>(
    stack.url,
    testAdminToken,
    `/requests?account=${accountId}`,
    3,
  );
  t.deepEqual(
    listed.map(({ id }) => id),
    ids,
  );
  const failures = await get<RequestPage>(`/requests?account=${accountId}&outcome=error`);
  t.like(failures.body, { total: 1, has_exact_total: true, has_more: false });
  t.deepEqual(
    failures.body.data.map(({ id }) => id),
    [ids[3]],
  );
  const addresses = await get<{ data: object[] }>(`/accounts/${accountId}/addresses`);
  t.like(addresses.body, { is_complete: true, addresses: 1 });
  const [first, last] = [rows[6]!.at.toISOString(), rows[0]!.at.toISOString()];
  t.like(addresses.body.data[0], { requests: 7, failed: 1, first_at: first, last_at: last });
  t.is((await get('/accounts/none/addresses')).status, 404);
  const next = await get<RequestPage>(`/requests?account=${accountId}&limit=3&after=${ids[2]}`);
  t.like(next.body, { total: null, has_more: true, last_id: ids[5] });
  const since = encodeURIComponent(rows[2]!.at.toISOString());
  t.is((await get<RequestPage>(`/requests?account=${accountId}&since=${since}`)).body.data.length, 3);
  t.is((await get<RequestPage>(`/requests?account=${accountId}&until=2026-01-01`)).body.data.length, 0);
});

test('requests are found by the upstream that was called last, and spending is summed by it', async (t) => {
  const account = await stack.createAccount();
  const id = await sendChat(account.apiKey);
  const { body: request } = await get<AdminRequest>(`/requests/${id}`);
  const found = await get<RequestPage>(`/requests?upstream=${request.upstream}&account=${account.id}`);
  t.deepEqual(
    found.body.data.map((row) => row.id),
    [id],
  );
  t.like(found.body, { total: 1, has_exact_total: true });
  t.is((await get<RequestPage>('/requests?upstream=none')).body.data.length, 0);
  const rows = await waitFor('the sums', async () => {
    const { body } = await get<{ data: AdminSpend[] }>('/spend?by=upstream,day');
    return body.data.length > 0 && body.data;
  });
  t.like(rows[0], { upstream: request.upstream, day: today, failures: 0 });
  const byModel = await get<{ data: AdminSpend[] }>(
    `/spend?by=upstream,model&upstream=${request.upstream}&model=demo-echo`,
  );
  t.like(byModel.body.data, [{ upstream: request.upstream, model: 'demo-echo' }]);
  // Other tests send requests meanwhile.
  t.true(byModel.body.data[0]!.requests >= rows[0]!.requests);
  for (const query of [`account=${account.id}&by=upstream`, 'by=account&upstream=builtin'])
    t.is((await get(`/spend?${query}`)).status, 422, query);
});

test('the requests of a filter are sent as a file, all of them', async (t) => {
  const { id: accountId } = await stack.createAccount();
  const rows = Array.from({ length: 350 }, (_, i) =>
    requestRow(accountId, {
      at: new Date(Date.now() - i * 1_000),
      success: i % 2 === 0,
      details: '=1+1',
      calls: [
        ['first', 5, 503, 'busy'],
        ['second', 7],
      ],
      vendorCostNano: 1n,
    }),
  );
  await stack.mongo.db.collection<RequestLogDocument>('request_logs').insertMany(rows);
  const response = await fetch(
    `${stack.url}/v1/admin/requests?account=${accountId}&outcome=success&limit=1`,
    {
      headers: { authorization: `Bearer ${testAdminToken}`, accept: 'text/csv' },
    },
  );
  t.is(response.headers.get('content-type'), 'text/csv; charset=utf-8');
  t.is(response.headers.get('content-disposition'), 'attachment; filename="requests.csv"');
  const lines = (await response.text()).trimEnd().split('\r\n');
  t.is(lines.length, 1 + 175);
  const cells = lines[1]!.split(',');
  t.is(cells[0], rows[0]!._id);
  t.true(lines[1]!.includes(`"'=1+1"`) && lines[1]!.includes('first 503; second 200'));
  t.deepEqual(cells.slice(-4), ['0.000000001', '0', '0.000000001', '0']);
});

test('what a vendor charges by is shown if the catalog still gives what was recorded', (t) => {
  const cost = { type: 'tokens', prompt: 10, completion: 20, free_requests: false } as const;
  const route = { upstream: { name: 'vendor' }, cost };
  const catalog = { find: () => ({ routes: [route] }) } as unknown as Parameters<typeof listVendorCharges>[1];
  const row = requestRow('ann', { calls: [['vendor', 5]], promptTokens: 3, completionTokens: 1 });
  const charged = listVendorCharges({ ...row, vendorCostNano: 50_000n }, catalog);
  t.like(presentCharges(charged), {
    rates: { prompt: 10, completion: 20 },
    quantities: { prompt: 3, completion: 1 },
  });
  for (const other of [
    { vendorCostNano: 50_001n },
    { vendorCostNano: 50_000n, calls: [['other', 5]] as const },
    { vendorCostNano: 0n },
  ])
    t.is(listVendorCharges({ ...row, ...other }, catalog), null);
});

test('spending is summed as JSON, and as CSV if that is accepted', async (t) => {
  const account = await stack.createAccount();
  await sendChat(account.apiKey);
  await sendChat(account.apiKey);
  const path = `/spend?account=${account.id}&by=model,day`;
  const rows = await waitFor('the sums', async () => {
    const { body } = await get<{ data: AdminSpend[] }>(path);
    return body.data[0]?.requests === 2 ? body.data : null;
  });
  t.like(rows, [
    { model: 'demo-echo', day: today, requests: 2, failures: 0, vendor_cost: 0, costed_requests: 2 },
  ]);
  t.false('account' in rows[0]!);
  t.is(rows[0]!.margin, rows[0]!.cost);
  const response = await fetch(`${stack.url}/v1/admin${path}`, {
    headers: { authorization: `Bearer ${testAdminToken}`, accept: 'text/csv' },
  });
  t.is(response.headers.get('content-type'), 'text/csv; charset=utf-8');
  const lines = (await response.text()).split('\r\n');
  t.regex(lines[0]!, /^model,day,requests,/);
  t.true(lines[1]!.startsWith(`demo-echo,${today},2,0,`));
  t.deepEqual(lines.slice(2), ['']);
  t.deepEqual((await get<{ data: unknown[] }>('/spend?account=nobody')).body, { data: [] });
});

test('the accounts that spent the most are listed with their names and the total of all', async (t) => {
  const create = async (name: string): Promise<string> =>
    (await callAdmin<{ id: string }>(stack.url, testAdminToken, 'POST', '/accounts', { name })).body.id;
  const ids = await Promise.all(['few', 'many', 'most'].map(create));
  const rows = ids.map((id, i) =>
    spendRow(id, 'ranked', { requests: 2, costNano: 9_007_199_254_740_993n + BigInt(i) }),
  );
  await new SpendStore(stack.mongo.db).ofAccounts.insertMany(rows);
  const { body } = await get<{ data: AdminSpend[]; total: AdminSpendTotal }>(
    '/spend?by=account&model=ranked&limit=2',
  );
  t.deepEqual(
    body.data.map(({ account, name }) => [account, name]),
    [
      [ids[2], 'most'],
      [ids[1], 'many'],
    ],
  );
  t.like(body.total, { rows: 3, requests: 6, cost: '27021597.764222982', vendor_cost: null });
  const least = await get<{ data: AdminSpend[] }>('/spend?by=account&model=ranked&limit=1&order=asc');
  t.is(least.body.data[0]!.name, 'few');
});

test('spending of many accounts is sent as it is read, and no more is read once the caller has left', async (t) => {
  const { log, waitForLine } = captureLog();
  const env = { ADMIN_TOKEN: testAdminToken };
  const slow = await useStack(t, { holdsMongo: true, workers: [], log, env });
  const ids = Array.from({ length: 5_000 }, (_, i) => `~account-${String(i).padStart(4, '0')}`);
  await slow.mongo.db.collection<{ _id: string }>('accounts').insertMany(ids.map((_id) => ({ _id })));
  const path = `${slow.url}/v1/admin/spend?by=account&model=used-by-nobody`;
  const headers = { authorization: `Bearer ${testAdminToken}` };
  // The second read of sums, which asks for this account, gets no reply.
  slow.mongoProxy!.hold(ids[300]);
  const caller = new AbortController();
  const response = await fetch(path, { headers, signal: caller.signal });
  const { value } = await response.body!.getReader().read();
  t.true('{"data":['.startsWith(Buffer.from(value).toString()));
  caller.abort();
  await waitForLine(({ path: logged }) => logged === '/v1/admin/spend');
  slow.mongoProxy!.release();
  const whole = await fetch(path, { headers });
  t.deepEqual(await whole.json(), { data: [] });
  t.is(slow.mongoProxy!.countSent(ids.at(-1)!), 2, 'by the second call: its sums, and the accounts after it');
});

test('a wrong filter is told', async (t) => {
  for (const path of [
    '/requests?since=yesterday1',
    '/requests?until=2026-02-30',
    '/requests?outcome=bad',
    '/requests?after=no-such-request',
    '/spend?by=hour',
    '/spend?since=2026-02-30',
    '/spend?since=2026-03-02&until=2026-03-01',
    '/spend?since=2025-03-01&until=2026-03-02',
    '/spend?since=0001-01-01',
  ]) {
    const response = await get(path);
    t.is(response.status, 422, path);
    t.is(codeOf(response), 'validation_failed', path);
  }
  t.is((await get('/spend?since=2025-03-02&until=2026-03-02')).status, 200, '366 days');
});

test('whatever a customer names is found: account, key, user, request, job, batch, code', async (t) => {
  const { user } = await createWebUser(stack, 'finder@example.com');
  const account = await stack.createAccount();
  const find = async (text: string): Promise<string[]> => {
    const { status, body } = await callAdmin<{
      data: { kind: string; id: string; account: string | null }[];
    }>(stack.url, testAdminToken, 'POST', '/find', { text });
    t.is(status, 200);
    return body.data.map(({ kind, id, account: owner }) => `${kind} ${id} ${owner ?? ''}`.trim());
  };
  const ofAccount = `account ${account.id} ${account.id}`;
  t.deepEqual(await find(` ${account.id} `), [ofAccount]);
  t.deepEqual(await find(account.apiKey), [ofAccount]);
  t.deepEqual(await find('Finder@Example.com'), [`user ${user._id}`]);

  const request = await sendChat(account.apiKey);
  t.deepEqual(await find(request), [`request ${request} ${account.id}`]);
  const job = await createJob(stack, account, '/v1/chat/completions', chat);
  t.true((await find(job.id)).includes(`job ${job.id} ${account.id}`));
  const placed = await stack.post('/v1/batches', account.apiKey, {
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    requests: [{ custom_id: 'a', body: chat }],
  });
  const batch = (await placed.json()) as { id: string };
  t.deepEqual(await find(batch.id), [`batch ${batch.id} ${account.id}`]);
  t.deepEqual(await find(`${account.id}, ${user._id} ${request}\n${batch.id} ${request.toUpperCase()}`), [
    ofAccount,
    `user ${user._id}`,
    `request ${request} ${account.id}`,
    `batch ${batch.id} ${account.id}`,
  ]);

  const { body } = await callAdmin<{ codes: string[] }>(stack.url, testAdminToken, 'POST', '/codes', {
    balance: 5,
  });
  const [code] = body.codes as [string];
  const [unused] = await find(code.toLowerCase());
  t.regex(unused!, /^code \S+$/);
  t.is((await callApi(stack.url, account.apiKey, 'POST', '/users/redeem', { code })).status, 200);
  t.deepEqual(await find(code), [`${unused} ${account.id}`]);
  t.like(await readAdmin(stack.env, 'find', code), [{ kind: 'code', account: account.id }]);
  t.deepEqual(await find(`“${account.apiKey}”`), [ofAccount]);
  t.deepEqual(await find(`my code is ${code.toLowerCase()}!`), [`${unused} ${account.id}`]);
  t.deepEqual(await find('nobody'), []);

  t.deepEqual(await find(`x-request-id: ${request}, ${batch.id}`), [
    `request ${request} ${account.id}`,
    `batch ${batch.id} ${account.id}`,
  ]);
  const made = await callAdmin<{ batch: string }>(stack.url, testAdminToken, 'POST', '/codes', {
    balance: 1,
  });
  t.deepEqual(await find(made.body.batch), [`code_batch ${made.body.batch}`]);
  await callAdmin(stack.url, testAdminToken, 'POST', '/tokens', { name: 'found-token', scope: 'read' });
  t.deepEqual(await find('found-token'), ['token found-token']);
  t.true((await find(chat.model)).includes(`model ${chat.model}`));
  t.true((await find('builtin')).includes('upstream builtin'));
  const unknown = await callAdmin(stack.url, testAdminToken, 'POST', '/find', {
    text: `mg-${'a'.repeat(43)}`,
  });
  t.deepEqual(unknown.body, { data: [], is_unknown_key: true } as unknown);
});

test('find asks for a text: blanks are none', async (t) => {
  for (const text of [' ', '\t\n ', '\u00a0'])
    t.is((await callAdmin(stack.url, testAdminToken, 'POST', '/find', { text })).status, 422);
});

test('a key, a token or a code in a query is refused with the place where it may be sent, and not repeated', async (t) => {
  const whole = [createApiKey(), createTokenSecret(), createRefillCode()] as const;
  const secrets = [...whole, whole[0].slice(0, 9), whole[1].slice(0, 10), whole[2].slice(0, 19)];
  const asked = [
    ...secrets.flatMap((secret) => [
      `/accounts?search=${secret}`,
      `/accounts?search=${encodeURIComponent(`key "${secret}"`)}`,
    ]),
    ...[
      '/requests?account=',
      '/spend?account=',
      '/jobs?account=',
      '/jobs/none?account=',
      '/batches?account=',
      '/batches/none?account=',
      '/codes?batch=',
      '/audit?resource=account:',
    ].map((path) => `${path}${secrets[0]}`),
  ];
  for (const path of asked) {
    const response = await get(path);
    t.is(response.status, 422, path);
    t.regex(JSON.stringify(response.body), /POST \/v1\/admin\/find/);
    for (const secret of secrets) t.false(JSON.stringify(response.body).includes(secret));
  }
});
