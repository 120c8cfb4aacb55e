import { randomUUID } from 'node:crypto';
import test from 'ava';
import { readAdmin } from '../../support/admin.ts';
import {
  callAdmin,
  codeOf,
  readAllPages,
  testAdminToken,
  type AdminResponse,
  type ListedPage,
} from '../../support/admin-api.ts';
import { callApi } from '../../support/call-api.ts';
import { createJob, readJob, waitForJob } from '../../support/jobs.ts';
import {
  ScriptedRefusal,
  startScriptedVendor,
  unstreamedChat,
  type ScriptedVendor,
} from '../../support/scripted-vendor.ts';
import { startStack, useStack, type TestAccount, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createWebUser } from '../../support/web-client.ts';

/** Codes, models, upstreams, queues, jobs, batches, users and tokens in the admin API. */

const chatModel = (id: string, routes: string): string =>
  `  - { id: ${id}, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [${routes}] }`;

const catalogOf = (url: string): string => `
upstreams:
  first: { kind: openai, baseUrl: '${url}/first', apiKeys: [sk-vendor-key-0123456789] }
  second: { kind: openai, baseUrl: '${url}/second', apiKeys: [sk-vendor-key-9876543210] }
  keyless: { kind: anthropic, baseUrl: 'https://vendor.example/path?token=secret', apiKeys: [env:KEY_THAT_IS_NOT_SET] }
models:
${chatModel('both', '{ upstream: first, model: a }, { upstream: second, model: b }')}
${chatModel('single', '{ upstream: first, model: a }')}
${chatModel('priced', '{ upstream: first, model: a, weight: 3, cost: { prompt: 3, completion: 5 } }, { upstream: keyless, model: c }')}
${chatModel('org/switched', '{ upstream: first, model: a }')}
`;

let stack: TestStack;
let vendor: ScriptedVendor;
/** What the vendor responds with, by the path of the call. */
let refusal: ScriptedRefusal | null = null;
const calledPaths: string[] = [];

test.before(async () => {
  vendor = await startScriptedVendor((_, path) => {
    calledPaths.push(path);
    return refusal ?? unstreamedChat;
  });
  stack = await startStack({ catalog: catalogOf(vendor.url), env: { ADMIN_TOKEN: testAdminToken } });
});
test.after.always(async () => {
  await stack?.close();
  await vendor?.close();
});

type Row = Readonly<Record<string, unknown>>;

const call = <T = Row>(method: string, path: string, body?: unknown): Promise<AdminResponse<T>> =>
  callAdmin<T>(stack.url, testAdminToken, method, path, body);

const body = { messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 };
const chat = ({ apiKey }: TestAccount, model: string) =>
  stack.post('/v1/chat/completions', apiKey, { ...body, model });

test.serial('codes are created, listed by pages without their values, and revoked by their id', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  const created = await call<{ codes: string[] }>('POST', '/codes', {
    balance: 5,
    free_requests: 1,
    count: 3,
  });
  t.is(created.status, 201);
  const [used, revoked] = created.body.codes as [string, string];
  t.is((await callApi(stack.url, account.apiKey, 'POST', '/users/redeem', { code: used })).status, 200);
  const rows = await readAllPages<Row>(stack.url, testAdminToken, '/codes', 1);
  t.is(rows.length, 3);
  const find = (code: string) => rows.find((row) => row['code'] === `…${code.slice(-4)}`)!;
  t.like(find(used), { status: 'redeemed', redeemed_by: account.id, balance: 5, free_requests: 1 });
  const answer = await call('POST', `/codes/${String(find(revoked)['id'])}/revoke`);
  t.like(answer, { status: 200, body: { status: 'revoked' } });
  t.is((await callApi(stack.url, account.apiKey, 'POST', '/users/redeem', { code: revoked })).status, 422);
  t.is((await call('POST', `/codes/${String(find(used)['id'])}/revoke`)).status, 422);
  t.is((await call('POST', '/codes/unknown/revoke')).status, 404);
  t.is((await readAllPages<Row>(stack.url, testAdminToken, '/codes?status=unused', 100)).length, 1);
  for (const wrong of [
    {},
    { balance: -1 },
    { balance: 1, count: 1_001 },
    { balance: 1, expires_at: '2020-01-01T00:00:00Z' },
  ])
    t.is((await call('POST', '/codes', wrong)).status, 422);
  const events = await call<ListedPage<Row>>('GET', '/audit?resource=code');
  const [latest] = events.body.data;
  t.deepEqual((await call('GET', `/audit/${String(latest!['id'])}`)).body, latest);
  t.is((await call('GET', '/audit/no-such-change')).status, 404);
  const before = encodeURIComponent(String(latest!['at']));
  const earlier = await call<ListedPage<Row>>('GET', `/audit?resource=code&until=${before}`);
  t.false(earlier.body.data.some(({ id }) => id === latest!['id']));
  t.true(earlier.body.data.length > 0);
  const text = JSON.stringify(events.body);
  for (const code of created.body.codes) t.false(text.includes(code), 'the log has no code');
});

test.serial(
  'the audit log names codes by their ids: which were made by whom, and which were revoked',
  async (t) => {
    const created = await call<{ ids: string[]; batch: string }>('POST', '/codes', { balance: 5, count: 3 });
    const { ids, batch } = created.body;
    const listed = (await readAllPages<Row>(stack.url, testAdminToken, '/codes', 100)).filter(
      (row) => row['batch'] === batch,
    );
    t.deepEqual(listed.map(({ id }) => String(id)).toSorted(), ids.toSorted());
    const readEvents = async (id: string) =>
      (await call<ListedPage<Row>>('GET', `/audit?resource=code:${id}`)).body.data;
    t.like((await readEvents(batch))[0], { action: 'code.create', after: { count: 3, codes: ids } });
    await call('POST', `/codes/${ids[0]!}/revoke`);
    t.like((await readEvents(ids[0]!))[0], { action: 'code.revoke', outcome: 'done' });
  },
);

test.serial(
  'codes with a key are created once, by many calls at once and however often they are repeated',
  async (t) => {
    type Codes = { codes: string[] | null; ids: string[] };
    const send = (key: string, fields: object) =>
      callAdmin<Codes>(stack.url, testAdminToken, 'POST', '/codes', fields, { 'idempotency-key': key });
    const count = async () => (await readAllPages<Row>(stack.url, testAdminToken, '/codes', 100)).length;
    const before = await count();
    const fields = { balance: 5, count: 3 };
    const responses = await Promise.all(Array.from({ length: 10 }, () => send('sale 1', fields)));
    t.true(responses.every(({ status }) => status === 201));
    t.is(new Set(responses.map(({ body: codes }) => JSON.stringify(codes))).size, 1);
    t.is(responses.filter(({ headers }) => headers.get('idempotent-replayed') === null).length, 1);
    t.is(await count(), before + 3);
    for (const other of [
      { balance: 6 },
      { count: 4 },
      { free_requests: 1 },
      { expires_at: '2100-01-01T00:00:00Z' },
    ])
      t.is(codeOf(await send('sale 1', { ...fields, ...other })), 'idempotency_conflict');

    // As if the first call had died before it had inserted all codes.
    const { codes, ids } = responses[0]!.body;
    await stack.mongo.db.collection<{ _id: string }>('refill_codes').deleteOne({ _id: ids[1]! });
    t.deepEqual((await send('sale 1', fields)).body.codes, codes);
    t.is(await count(), before + 3);

    // A day later, the database has deleted the codes in plain text.
    const shown = stack.mongo.db.collection<{ encrypted: string }>('refill_codes_shown');
    const stored = JSON.stringify(await shown.find({}).toArray());
    for (const code of codes!) t.false(stored.includes(code));
    await shown.deleteMany({});
    t.like(await send('sale 1', fields), { status: 201, body: { codes: null, ids } });
    t.is(await count(), before + 3);
  },
);

test.serial('a model is disabled and enabled again, also one whose id has a slash', async (t) => {
  const account = await stack.createAccount();
  const listed = await call<ListedPage<Row>>('GET', '/models');
  t.deepEqual(
    listed.body.data.map((row) => row['id']),
    ['both', 'single', 'priced', 'org/switched'],
  );
  t.like(await call('PATCH', '/models/org/switched', { active: false }), {
    status: 200,
    body: { active: false, disabled: true },
  });
  t.is((await chat(account, 'org/switched')).status, 422);
  t.like(await call('PATCH', '/models/org%2Fswitched', { active: true }), {
    status: 200,
    body: { active: true, disabled: false },
  });
  t.is((await chat(account, 'org/switched')).status, 200);
  t.is(codeOf(await call('PATCH', '/models/none', { active: true })), 'model_not_found');
  t.is((await call('PATCH', '/models/single', {})).status, 422);
});

test.serial(
  'a test of a model calls the vendor once through a worker, and shows the vendor’s own reason; nobody pays',
  async (t) => {
    const before = calledPaths.length;
    const ok = await call('POST', '/models/single/test');
    t.like(ok, {
      status: 200,
      body: { model: 'single', ok: true, upstream: 'first', upstream_model: 'a', reason: null },
    });
    t.true(Number(ok.body['prompt_tokens']) > 0);
    t.is(calledPaths.length, before + 1);
    refusal = new ScriptedRefusal(400, { error: { message: 'not on a Sunday' } });
    t.teardown(() => {
      refusal = null;
    });
    const failed = await readAdmin<Row>(stack.env, 'model', 'test', 'single');
    t.like(failed, { ok: false, upstream: 'first', status: 400 });
    t.regex(String(failed['reason']), /not on a Sunday/);
    t.is((await call('POST', '/models/none/test')).status, 404);
    refusal = null;
    await stack.stopWorkers();
    const unserved = await waitFor('the worker to be gone', async () => {
      const response = await call('POST', '/models/single/test');
      return response.status === 503 && response;
    });
    t.regex(JSON.stringify(unserved.body), /No live worker/);
    await stack.startWorker();
  },
);

test.serial(
  'a drained upstream gets no further call, also from a new worker, until it is undrained',
  async (t) => {
    const account = await stack.createAccount();
    const countFirst = () => calledPaths.filter((path) => path.startsWith('/first')).length;
    const drained = await call<{ data: Row[] }>('POST', '/upstreams/first/drain', { model: 'both' });
    t.is(drained.status, 200);
    t.like(drained.body.data[0], { upstream: 'first', model: 'both', drained: true });
    t.is(drained.body.data.length, 1);
    await waitFor('the drain to hold', async () => {
      const before = countFirst();
      for (let i = 0; i < 10; i++) if ((await chat(account, 'both')).status !== 200) return false;
      return countFirst() === before;
    });
    await stack.stopWorkers();
    await stack.startWorker();
    const before = countFirst();
    for (let i = 0; i < 10; i++) t.is((await chat(account, 'both')).status, 200);
    t.is(countFirst(), before);
    t.is((await chat(account, 'single')).status, 200, 'other models still use it');

    const all = await readAdmin<Row[]>(stack.env, 'upstream', 'drain', 'first');
    t.true(all.every((row) => row['drained'] === true));
    await waitFor('the model to be inactive', async () => (await chat(account, 'single')).status === 422);
    const rows = await call<ListedPage<Row>>('GET', '/upstreams?upstream=first');
    t.true(rows.body.data.every((row) => row['drained'] === true && row['not_called'] !== null));

    await call('POST', '/upstreams/first/undrain', {});
    t.like(
      (await call<{ data: Row[] }>('POST', '/upstreams/first/undrain', { model: 'both' })).body.data[0],
      {
        drained: false,
      },
    );
    await waitFor('it to be called again', async () => {
      await chat(account, 'both');
      return countFirst() > before + 1;
    });
    t.is((await chat(account, 'single')).status, 200);
    t.is((await call('POST', '/upstreams/none/drain', {})).status, 404);
    t.is(codeOf(await call('POST', '/upstreams/first/drain', { model: 'none' })), 'model_not_found');
  },
);

test.serial('a reset ends the cooldown of a key, so that it is called at once', async (t) => {
  const account = await stack.createAccount();
  refusal = new ScriptedRefusal(401, { error: { message: 'this key is not valid' } });
  t.teardown(() => {
    refusal = null;
  });
  t.is((await chat(account, 'single')).status, 502);
  refusal = null;
  const readStop = async () =>
    (await call<ListedPage<Row>>('GET', '/upstreams?upstream=first')).body.data.find(
      (row) => row['model'] === 'single',
    )!['not_called'];
  await waitFor('the key to be on cooldown', readStop);
  const reset = await call<{ data: Row[] }>('POST', '/upstreams/first/reset', {});
  t.true(reset.body.data.every((row) => row['not_called'] === null));
  t.is((await chat(account, 'single')).status, 200);
  t.is((await call('POST', '/upstreams/none/reset', {})).status, 404);
});

test.serial('routes have their weights and vendor prices, and those without a key the reason', async (t) => {
  const rows = await readAllPages<Row>(stack.url, testAdminToken, '/upstreams', 3);
  const [first, keyless] = rows.filter(({ model }) => model === 'priced');
  t.like(first, {
    upstream_model: 'a',
    kind: 'openai',
    host: new URL(vendor.url).host,
    weight: 3,
    cost: { type: 'tokens', prompt: 3, completion: 5 },
    usable: true,
    upstream_drained: false,
  });
  t.like(keyless, {
    upstream: 'keyless',
    upstream_model: 'c',
    kind: 'anthropic',
    host: 'vendor.example',
    weight: 1,
    cost: null,
    usable: false,
    key: null,
    not_called: 'KEY_THAT_IS_NOT_SET is not set in the api process',
  });
  t.false(JSON.stringify(rows).includes('secret'));
  await call('POST', '/upstreams/first/drain', {});
  const drained = await call<ListedPage<Row>>('GET', '/upstreams?upstream=first');
  t.true(drained.body.data.every((row) => row['drained'] === true && row['upstream_drained'] === true));
  await call('POST', '/upstreams/first/undrain', {});
});

test('queues are shown, and draining one says how many it cancelled', async (t) => {
  const held = await useStack(t, { workers: [], env: { ADMIN_TOKEN: testAdminToken } });
  const account = await held.createAccount();
  const { id } = await createJob(held, account, '/v1/chat/completions', { ...body, model: 'demo-echo' });
  const on = <T = Row>(method: string, path: string) => callAdmin<T>(held.url, testAdminToken, method, path);
  t.like((await on<Record<string, Row>>('GET', '/queues')).body, {
    chat: { waiting: 1, workers: 0 },
    image: { waiting: 0 },
  });
  t.deepEqual((await on('POST', '/queues/chat/drain')).body, { queue: 'chat', jobs: 1, requests: 0 });
  t.is((await readJob(held, account, id)).status, 'cancelled');
  t.is((await on('POST', '/queues/nonsense/drain')).status, 422);
  const { body: log } = await on<ListedPage<Row>>('GET', '/audit?resource=queue:chat');
  t.like(log.data[0], { action: 'queue.drain', outcome: 'done', after: { jobs: 1, requests: 0 } });
});

test.serial('failed jobs of a queue are listed by pages, and retried once after a dry run', async (t) => {
  const account = await stack.createAccount();
  refusal = new ScriptedRefusal(400, { error: { message: 'not today' } });
  t.teardown(() => (refusal = null));
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    const { id } = await createJob(stack, account, '/v1/chat/completions', { ...body, model: 'single' });
    t.is((await waitForJob(stack, account, id)).status, 'failed');
    ids.unshift(id);
  }
  refusal = null;
  const list = () => readAllPages<Row>(stack.url, testAdminToken, '/queues/chat/failed', 2);
  const failed = await list();
  t.deepEqual(
    failed.map(({ id }) => id),
    ids,
  );
  t.like(failed[0], { account: account.id, status: 'failed', error_code: 'upstream_rejected' });
  t.deepEqual((await call('GET', '/queues/image/failed')).body, { data: [], has_more: false, last_id: null });
  t.is((await call('GET', '/queues/chat/failed?after=nonsense')).status, 422);
  const effects = { failed: 3, jobs: 3, accounts: 1, refused: [] };
  t.like((await call('POST', '/queues/chat/retry?dry_run=true')).body, { dry_run: true, effects });
  t.like(await readAdmin(stack.env, 'queue', 'retry', 'chat', '--dry-run'), { dry_run: true, effects });
  t.is((await list()).length, 3);
  t.like((await call('POST', '/queues/chat/retry')).body, {
    queue: 'chat',
    retried: 3,
    refused: [],
    has_more: false,
  });
  t.deepEqual(await list(), []);
  t.like((await call('POST', '/queues/chat/retry')).body, { retried: 0, last_id: null });
  const { body: log } = await call<ListedPage<Row>>('GET', '/audit?resource=queue:chat');
  t.like(log.data[1], { action: 'queue.retry', outcome: 'done', after: { retried: 3 } });
  const jobs = await waitFor('the new jobs to end', async () => {
    const rows = await readAllPages<Row>(stack.url, testAdminToken, `/jobs?account=${account.id}`, 100);
    return rows.every(({ status }) => status === 'succeeded' || status === 'failed') && rows;
  });
  t.is(jobs.filter(({ status }) => status === 'succeeded').length, 3);
});

test('jobs are listed by account on pages, shown with or without their account, and cancelled', async (t) => {
  const held = await useStack(t, { workers: [], env: { ADMIN_TOKEN: testAdminToken } });
  const account = await held.createAccount();
  const ids: string[] = [];
  for (let i = 0; i < 5; i++)
    ids.unshift((await createJob(held, account, '/v1/chat/completions', { ...body, model: 'demo-echo' })).id);
  const listed = await readAllPages<Row>(held.url, testAdminToken, `/jobs?account=${account.id}`, 2);
  t.deepEqual(
    listed.map((row) => row['id']),
    ids,
  );
  const on = (method: string, path: string) => callAdmin(held.url, testAdminToken, method, path);
  t.like(await on('GET', `/jobs/${ids[0]}`), {
    status: 200,
    body: { id: ids[0], account: account.id, status: 'queued' },
  });
  t.like(await on('GET', `/jobs/${ids[1]}?account=${account.id}`), { status: 200, body: { id: ids[1] } });
  t.like(await on('POST', `/jobs/${ids[0]}/cancel`), { status: 200, body: { status: 'cancelled' } });
  t.like(await on('POST', `/jobs/${ids[0]}/cancel`), { status: 200, body: { status: 'cancelled' } });
  for (const [method, path] of [
    ['GET', `/jobs/${randomUUID()}`],
    ['GET', '/jobs/none'],
    ['POST', `/jobs/${ids[1]}/cancel?account=${randomUUID()}`],
    ['GET', `/jobs?account=${randomUUID()}`],
  ] as const)
    t.is((await on(method, path)).status, 404, path);
  t.is((await on('GET', '/jobs')).status, 422, 'without an account and a status');
  const other = await held.createAccount();
  ids.unshift((await createJob(held, other, '/v1/chat/completions', { ...body, model: 'demo-echo' })).id);
  const queued = await readAllPages<Row>(held.url, testAdminToken, '/jobs?status=queued', 2);
  t.deepEqual(new Set(queued.map((row) => row['id'])), new Set(ids.filter((id) => id !== ids[1])));
  for (const query of ['status=cancelled', `status=cancelled&account=${account.id}`])
    t.deepEqual(
      (await readAllPages<Row>(held.url, testAdminToken, `/jobs?${query}`, 2)).map((row) => row['id']),
      [ids[1]],
    );
  t.deepEqual(
    (await readAdmin<Row[]>(held.env, 'job', 'list', '--account', other.id)).map((row) => row['id']),
    [ids[0]],
  );
  t.is((await readAdmin<Row[]>(held.env, 'job', 'list', '--status', 'queued', '--limit', '3')).length, 3);
  for (const after of [ids[1], 'none', `1795252504000:${randomUUID()}:${ids[1]}`])
    t.is((await on('GET', `/jobs?account=${account.id}&after=${after}`)).status, 422, after);
});

test.serial('batches are listed, shown, cancelled, and their failed lines retried', async (t) => {
  const account = await stack.createAccount();
  refusal = new ScriptedRefusal(400, { error: { message: 'no' } });
  t.teardown(() => {
    refusal = null;
  });
  const requests = [1, 2].map((i) => ({ custom_id: `line-${i}`, body: { ...body, model: 'single' } }));
  const made = await callApi<{ id: string }>(stack.url, account.apiKey, 'POST', '/batches', {
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    requests,
  });
  const { id } = made.body;
  const failed = await waitFor('the batch to end', async () => {
    const { body: batch } = await call('GET', `/batches/${id}`);
    return batch['status'] === 'completed' && batch;
  });
  t.like(failed, { account: account.id, lines_failed: 2, lines_succeeded: 0 });
  t.like(
    (await call<ListedPage<Row>>('GET', `/batches?account=${account.id}&status=completed`)).body.data[0],
    { id },
  );
  refusal = null;
  const retried = await call('POST', `/batches/${id}/retry?account=${account.id}`);
  t.like(retried, { status: 200, body: { account: account.id, lines_total: 2 } });
  const again = await call('POST', `/batches/${id}/retry`);
  t.is(again.status, 422, 'it was retried');
  const repeated = await callAdmin(stack.url, testAdminToken, 'POST', `/batches/${id}/retry`, undefined, {
    'idempotency-key': 'a click',
  });
  t.is(repeated.headers.get('idempotent-replayed'), 'true');
  t.is(repeated.body['id'], retried.body['id']);
  t.like(await call('POST', `/batches/${id}/cancel`), { status: 200, body: { status: 'completed' } });
  for (const path of ['/batches/none', `/batches/batch_${'0'.repeat(32)}`])
    t.is((await call('GET', path)).status, 404);
  t.is((await call('GET', '/batches?status=nonsense')).status, 422);
  t.is((await call('GET', '/batches?status=completed&after=x')).status, 422);
  t.is((await call('GET', `/batches?account=${account.id}&after=1:${randomUUID()}:${id}`)).status, 422);
});

test('users are listed, shown by id or address, banned, unbanned, and signed out', async (t) => {
  const email = `${randomUUID()}@example.com`;
  const { client, user } = await createWebUser(stack, email);
  const rows = await readAllPages<Row>(stack.url, testAdminToken, '/users', 1);
  t.true(rows.some((row) => row['id'] === user._id));
  t.like(await call('GET', `/users/${user._id}`), { status: 200, body: { email, sessions: { length: 1 } } });
  t.like(await call('GET', `/users/${encodeURIComponent(email)}`), { status: 200, body: { id: user._id } });
  t.like(await call('POST', `/users/${user._id}/revoke-sessions`), {
    status: 200,
    body: { sessions_ended: 1 },
  });
  t.is((await client.request('GET', '/auth/me')).status, 401);
  t.like(await call('POST', `/users/${user._id}/ban`, { reason: 'stolen mailbox' }), {
    status: 200,
    body: { banned: true, ban_reason: 'stolen mailbox', was_already_banned: false },
  });
  t.like(await call('POST', `/users/${user._id}/unban`), {
    status: 200,
    body: { banned: false, was_banned: true },
  });
  t.like(await call('POST', `/users/${user._id}/unban`), { status: 200, body: { was_banned: false } });
  t.is((await call('POST', `/users/${user._id}/ban`, {})).status, 422);
  t.is((await call('GET', '/users/none')).status, 404);
});

test('tokens are made with a scope, listed without their secrets, and revoked', async (t) => {
  const name = `made-${randomUUID().slice(0, 8)}`;
  const made = await call<{ token: string }>('POST', '/tokens', { name, scope: 'read' });
  t.like(made, { status: 201, body: { id: name, name, scope: 'read', revoked_at: null } });
  t.is((await callAdmin(stack.url, made.body.token, 'GET', '/accounts')).status, 200, 'it works at once');
  const listed = await readAllPages<Row>(stack.url, testAdminToken, '/tokens', 1);
  t.like(listed[0], { id: 'ADMIN_TOKEN', scope: 'all', created_at: null });
  t.like(
    listed.find((row) => row['id'] === name),
    { scope: 'read', revoked_at: null },
  );
  t.false(JSON.stringify(listed).includes(made.body.token));
  t.like(await call('DELETE', `/tokens/${name}`), { status: 200, body: { id: name } });
  t.is((await callAdmin(stack.url, made.body.token, 'GET', '/accounts')).status, 401);
  t.is((await call('DELETE', '/tokens/none')).status, 404);
  t.is((await call('DELETE', '/tokens/ADMIN_TOKEN')).status, 422);
  for (const wrong of [
    { name },
    { name, scope: 'none' },
    { name: 'a b', scope: 'read' },
    { name: 'command', scope: 'read' },
    { name, scope: 'read' },
  ])
    t.is((await call('POST', '/tokens', wrong)).status, 422, JSON.stringify(wrong));
});
