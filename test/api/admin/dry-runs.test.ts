import test from 'ava';
import { readAdmin } from '../../support/admin.ts';
import { callAdmin, codeOf, createToken, testAdminToken, type ListedPage } from '../../support/admin-api.ts';
import { callApi } from '../../support/call-api.ts';
import { createJob, readJob } from '../../support/jobs.ts';
import { startStack, type TestAccount, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { createWebUser } from '../../support/web-client.ts';

/** `dry_run`: what a change would do, in numbers, without the change. No worker takes chats, so that everything waits. */

interface Response {
  readonly dry_run: true;
  readonly is_exact: boolean;
  readonly effects: Readonly<Record<string, unknown>>;
}
type Row = Readonly<Record<string, unknown>>;

const model = 'demo-echo';
const chat = { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 10 };

let stack: TestStack;
let first: TestAccount;
let second: TestAccount;
let jobs: string[];
let waiting: AbortController;

test.before(async () => {
  stack = await startStack({
    env: { ADMIN_TOKEN: testAdminToken },
    workers: [{ queues: ['image'], concurrency: 1 }],
  });
  [first, second] = [await stack.createAccount(), await stack.createAccount()];
  jobs = [];
  for (const account of [first, first, second])
    jobs.push((await createJob(stack, account, '/v1/chat/completions', chat)).id);
  waiting = new AbortController();
  fetch(`${stack.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${first.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(chat),
    signal: waiting.signal,
  }).catch(() => undefined);
});
test.after.always(async () => {
  waiting?.abort();
  await stack?.close();
});

const call = <T = Row>(method: string, path: string, body?: unknown, token = testAdminToken) =>
  callAdmin<T>(stack.url, token, method, path, body);

async function dryRun(method: string, path: string, body?: unknown): Promise<Response> {
  const { status, body: found } = await call<Response>(method, `${path}?dry_run=true`, body);
  if (status !== 200) throw new Error(`${status}: ${JSON.stringify(found)}`);
  return found;
}

test.serial('draining a queue and disabling a model say what waits, and of how many accounts', async (t) => {
  const drained = await waitFor('the request to wait', async () => {
    const { effects } = await dryRun('POST', '/queues/chat/drain');
    return effects['requests'] === 1 && effects;
  });
  t.deepEqual(drained, { jobs: 3, requests: 1, accounts: 2 });
  t.deepEqual((await dryRun('POST', '/queues/image/drain')).effects, { jobs: 0, requests: 0, accounts: 0 });
  t.deepEqual(await readAdmin(stack.env, 'queue', 'drain', 'chat', '--dry-run'), {
    dry_run: true,
    is_exact: false,
    effects: drained,
  });
  const work = {
    requests_waiting: 1,
    requests_running: 0,
    jobs_waiting: 3,
    jobs_running: 0,
    lines_waiting: 0,
    lines_running: 0,
  };
  const disabled = await dryRun('PATCH', `/models/${model}`, { active: false });
  t.deepEqual(disabled.effects, { is_changed: true, requests_last_hour: 0, ...work });
  t.like((await dryRun('PATCH', `/models/${model}`, { active: true })).effects, { is_changed: false });
  const upstream = await dryRun('POST', '/upstreams/builtin/drain', { model });
  t.deepEqual(upstream.effects, { calls: 0, models: [model], models_without_route: [model], ...work });
  const all = (await dryRun('POST', '/upstreams/builtin/drain', {})).effects;
  t.true((all['models_without_route'] as string[]).length > 1);
  const { body: models } = await call<ListedPage<Row>>('GET', '/models');
  t.true(models.data.find(({ id }) => id === model)!['active']);
  t.is((await readJob(stack, second, jobs[2]!)).status, 'queued');
});

test.serial('a ban and a new key say what an account has in progress', async (t) => {
  const { effects, is_exact: isExact } = await waitFor('the request to be admitted', async () => {
    const read = await dryRun('POST', `/accounts/${first.id}/ban`, { reason: 'test' });
    return read.effects['requests'] === 1 && read;
  });
  t.true(isExact);
  t.like(effects, { requests: 1, jobs_waiting: 2, jobs_running: 0, batches: 0, lines: 0 });
  t.true(Number(effects['reserved']) > 0 && Number(effects['balance']) > 0);
  t.false((await call('GET', `/accounts/${first.id}`)).body['banned']);
  t.like((await dryRun('POST', `/accounts/${first.id}/rotate-key`)).effects, {
    requests: 1,
    user_email: null,
  });
  t.is((await callApi(stack.url, first.apiKey, 'GET', '/users/profile')).status, 200, 'the key works');
  t.is((await call('POST', '/accounts/none/ban?dry_run=true', { reason: 'test' })).status, 404);
});

test.serial('cancelling a job or a batch says whether it would change anything', async (t) => {
  t.like((await dryRun('POST', `/jobs/${jobs[2]}/cancel`)).effects, {
    status: 'queued',
    jobs: 1,
    is_running: false,
  });
  const account = await stack.createAccount();
  const requests = [1, 2, 3].map((i) => ({ custom_id: `line-${i}`, body: chat }));
  const { body: batch } = await callApi<{ id: string }>(stack.url, account.apiKey, 'POST', '/batches', {
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    requests,
  });
  const { effects } = await dryRun('POST', `/batches/${batch.id}/cancel`);
  t.like(effects, { batches: 1, lines_done: 0, lines_left: 3, cost: 0 });
  const banned = await dryRun('POST', `/accounts/${account.id}/ban`, { reason: 'test' });
  t.like(banned.effects, { batches: 1, lines: 3 });
  t.deepEqual(
    (await readAdmin<Response>(stack.env, 'batch', 'cancel', batch.id, '--dry-run')).effects,
    effects,
  );
  await call('POST', `/batches/${batch.id}/cancel`);
  t.is((await dryRun('POST', `/batches/${batch.id}/cancel`)).effects['batches'], 0);
});

test.serial('users, tokens and codes say how many sessions end, and what codes are worth', async (t) => {
  const { user } = await createWebUser(stack, 'dry-run@example.com');
  t.deepEqual((await dryRun('POST', `/users/${user._id}/ban`, { reason: 'test' })).effects, {
    sessions: 1,
    accounts: 0,
  });
  t.deepEqual((await dryRun('POST', `/users/${user._id}/revoke-sessions`)).effects, { sessions: 1 });

  const token = await createToken(stack, 'support', 'all');
  await call('POST', '/session', undefined, token);
  t.deepEqual((await dryRun('DELETE', '/tokens/support')).effects, {
    is_changed: true,
    sessions: 1,
    last_changed_at: null,
  });
  t.is((await call('GET', '/tokens', undefined, token)).status, 200, 'the token works');
  t.is(codeOf(await call('DELETE', '/tokens/none?dry_run=true')), 'not_found');

  const { body: made } = await call<{ codes: string[]; ids: string[]; batch: string }>('POST', '/codes', {
    balance: 50,
    free_requests: 2,
    count: 3,
  });
  await callApi(stack.url, second.apiKey, 'POST', '/users/redeem', { code: made.codes[0]! });
  const worth = { codes: 2, redeemed: 1, balance: 100, free_requests: 4 };
  t.deepEqual((await dryRun('POST', `/codes/batches/${made.batch}/revoke`)).effects, worth);
  t.deepEqual((await dryRun('POST', `/codes/${made.ids[1]!}/revoke`)).effects, {
    codes: 1,
    redeemed: 0,
    balance: 50,
    free_requests: 2,
  });
  const revoked = await call('POST', `/codes/batches/${made.batch}/revoke`);
  t.deepEqual(revoked.body, { batch: made.batch, codes: 2 });
  t.is((await call('POST', '/codes/batches/none/revoke')).status, 404);
  const listed = await call<ListedPage<Row>>('GET', `/codes?batch=${made.batch}&status=revoked`);
  t.is(listed.body.data.length, 2);
  const { body: log } = await call<ListedPage<Row>>('GET', `/audit?resource=code:${made.batch}`);
  t.like(log.data[0], { action: 'code.revoke', outcome: 'done', before: worth, after: { codes: 2 } });
});

test.serial('no dry run is in the audit log, and a token that only reads may make none', async (t) => {
  const { body: log } = await call<ListedPage<Row>>('GET', '/audit?limit=100');
  const actions = new Set(log.data.map(({ action }) => action));
  for (const action of [
    'account.ban',
    'account.rotate-key',
    'queue.drain',
    'model.disable',
    'upstream.drain',
  ])
    t.false(actions.has(action));
  for (const action of ['job.cancel', 'user.ban', 'token.revoke']) t.false(actions.has(action));
  const token = await createToken(stack, 'reader', 'read');
  t.is(codeOf(await call('POST', '/queues/chat/drain?dry_run=true', undefined, token)), 'forbidden');
});
