import { randomUUID } from 'node:crypto';
import test from 'ava';
import type { RequestLogPage } from '../../api/contract/request-logs.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { AdminRequest } from '../../shared/contract/admin-requests.ts';
import { readAdmin } from '../support/admin.ts';
import { callAdmin, testAdminToken, type ListedPage } from '../support/admin-api.ts';
import { callApi } from '../support/call-api.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Requests that were rejected before a model was called: who sent them finds out why, and so do operators. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key] }
  fetching: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key], imageUrls: fetch }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-sim }] }
  - { id: seeing, type: vision, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: fetching, model: gpt-sim }] }
  - { id: refusing, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-sim+fail-400 }] }
`;

let stack: TestStack;
let vendor: VendorSimulator;

test.before(async () => {
  vendor = await startVendorSimulator({ logCapacity: 0 });
  stack = await startStack({
    catalog: catalogOf(vendor.url),
    env: { ADMIN_TOKEN: testAdminToken },
    api: { rejectionFlushMs: 5 },
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const messages = [{ role: 'user', content: 'hello there' }];

async function chat(
  { apiKey }: TestAccount,
  body: object = {},
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly id: string }> {
  const response = await stack.post(
    '/v1/chat/completions',
    apiKey,
    { model: 'chat', messages, ...body },
    headers,
  );
  await response.arrayBuffer();
  return { status: response.status, id: response.headers.get('x-request-id')! };
}

const readLog = async ({ apiKey }: TestAccount, query = '') =>
  (await callApi<RequestLogPage>(stack.url, apiKey, 'GET', `/users/request_logs?${query}`)).body;

const listAdmin = async (query: string) =>
  (
    await callAdmin<ListedPage<AdminRequest> & { total: number }>(
      stack.url,
      testAdminToken,
      'GET',
      `/requests?${query}`,
    )
  ).body;

const waitForRejected = async (account: TestAccount, count: number) =>
  await waitFor(`${count} rejected requests`, async () => {
    const page = await readLog(account, 'outcome=rejected');
    return page.total_count >= count && page;
  });

test('a request without money, with a wrong field, for no model and of a banned account is found, with what its sender was told', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  const sent = [
    await chat(account),
    await chat(account, { messages: [] }),
    await chat(account, { model: 'no-such-model' }),
  ];
  t.deepEqual(
    sent.map(({ status }) => status),
    [402, 422, 404],
  );
  const { items, totals } = await waitForRejected(account, 3);
  t.deepEqual(
    items.map(({ request_id: id }) => id),
    sent.map(({ id }) => id).toReversed(),
  );
  t.deepEqual(
    items.map(({ response_code: status, model_name: model }) => [status, model]),
    [
      [404, ''],
      [422, ''],
      [402, 'chat'],
    ],
  );
  t.regex(items[2]!.details!, /^insufficient_balance: .*Refill/);
  t.like(items[0]!, { success: false, cost_request: 0, prompt_tokens: 0, rates: null });
  t.deepEqual(totals, { requests: 3, prompt_tokens: 0, completion_tokens: 0, cost: 0 });

  await callAdmin(stack.url, testAdminToken, 'POST', `/accounts/${account.id}/ban`, { reason: 'test' });
  const banned = await waitFor('the ban', async () => {
    const one = await chat(account);
    return one.status === 403 && one;
  });
  const found = await waitFor('the request of the banned account', async () => {
    const { status, body } = await callAdmin<AdminRequest>(
      stack.url,
      testAdminToken,
      'GET',
      `/requests/${banned.id}`,
    );
    return status === 200 && body;
  });
  t.like(found, {
    account: account.id,
    outcome: 'rejected',
    status: 403,
    code: 'account_banned',
    model: 'chat',
    upstream: null,
    attempts: [],
    cost: 0,
    price_version: null,
  });
});

test('operators list rejected requests by account, model and time, page by page, and find them by id', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  const ids: string[] = [];
  for (let i = 0; i < 5; i += 1) ids.unshift((await chat(account)).id);
  ids.unshift((await chat(account, { model: 'refusing' })).id);
  await waitForRejected(account, 6);
  const first = await listAdmin(`outcome=rejected&account=${account.id}&limit=4`);
  t.like(first, { total: 6, has_more: true });
  const second = await listAdmin(`outcome=rejected&account=${account.id}&limit=4&after=${first.last_id}`);
  t.deepEqual(
    [...first.data, ...second.data].map(({ id }) => id),
    ids,
  );
  t.deepEqual(
    (await listAdmin(`outcome=rejected&account=${account.id}&model=refusing`)).data.map(({ id }) => id),
    ids.slice(0, 1),
  );
  t.is((await listAdmin(`outcome=rejected&account=${account.id}&until=2020-01-01`)).data.length, 0);
  const { body } = await callAdmin<{ data: { kind: string; id: string }[] }>(
    stack.url,
    testAdminToken,
    'POST',
    '/find',
    { text: `x-request-id: ${ids[2]}` },
  );
  t.like(body.data, [{ kind: 'request', id: ids[2] }]);
  const shown = await readAdmin<AdminRequest>(stack.env, 'request', 'show', ids[2]!);
  t.like(shown, { outcome: 'rejected', code: 'insufficient_balance' });
  const listed = await readAdmin<AdminRequest[]>(
    stack.env,
    'request',
    'list',
    '--account',
    account.id,
    '--outcome',
    'rejected',
  );
  t.deepEqual(
    listed.map(({ id }) => id),
    ids,
  );
});

test('they are in no other list and in no sums, and others do not see them', async (t) => {
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const rejected = await chat(account, { messages: [] });
  const served = await chat(account);
  const refused = await chat(account, { model: 'refusing' });
  t.deepEqual([rejected.status, served.status, refused.status], [422, 200, 400]);
  await waitForRejected(account, 1);
  const log = await waitFor('the request log', async () => {
    const page = await readLog(account);
    return page.total_count === 2 && page;
  });
  t.deepEqual(log.items.map(({ request_id: id }) => id).toSorted(), [served.id, refused.id].toSorted());
  // A model was asked: this one is in the log, and not twice.
  t.is((await readLog(account, 'outcome=rejected')).total_count, 1);
  t.is((await readLog(account, 'outcome=error')).total_count, 1);
  t.is((await readLog(account, `request_id=${rejected.id}`)).total_count, 1);
  t.is((await readLog(account, `request_id=${rejected.id}&outcome=error`)).total_count, 0);
  t.is((await readLog(other, `request_id=${rejected.id}`)).total_count, 0);
  t.is((await readLog(other, 'outcome=rejected')).total_count, 0);
  t.is((await listAdmin(`account=${account.id}`)).total, 2);
});

test('a request that only reads is not logged, and neither is a replayed response', async (t) => {
  const account = await stack.createAccount();
  const missing = await callApi(stack.url, account.apiKey, 'GET', `/jobs/${randomUUID()}`);
  t.is(missing.status, 404);
  const headers = { 'idempotency-key': 'one' };
  const first = await chat(account, {}, headers);
  const again = await chat(account, {}, headers);
  t.deepEqual([first.status, again.status, again.id], [200, 200, first.id]);
  const conflict = await chat(account, { max_tokens: 5 }, headers);
  t.is(conflict.status, 409);
  const { items } = await waitForRejected(account, 1);
  t.deepEqual(
    items.map(({ request_id: id, response_code: status }) => [id, status]),
    [[conflict.id, 409]],
  );
});

test('a request that a worker rejects before it calls a vendor is among them', async (t) => {
  const account = await stack.createAccount();
  const url = 'https://127.0.0.1:9/picture.png';
  const content = [
    { type: 'text', text: 'what is this?' },
    { type: 'image_url', image_url: { url } },
  ];
  const { status, id } = await chat(account, { model: 'seeing', messages: [{ role: 'user', content }] });
  t.is(status, 422);
  const { items } = await waitForRejected(account, 1);
  t.like(items[0], { request_id: id, model_name: 'seeing', response_code: 422 });
  t.is((await readLog(account)).total_count, 0);
});

test('no upstream was called for them, so a filter by one selects none', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  await chat(account);
  await waitForRejected(account, 1);
  t.like(await listAdmin(`outcome=rejected&account=${account.id}&upstream=vendor`), {
    data: [],
    total: 0,
    has_more: false,
  });
});

test('the file of rejected requests has what the list has', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  const { id } = await chat(account);
  await waitForRejected(account, 1);
  const response = await fetch(`${stack.url}/v1/users/request_logs?outcome=rejected`, {
    headers: { authorization: `Bearer ${account.apiKey}`, accept: 'text/csv' },
  });
  const lines = (await response.text()).trim().split('\r\n');
  t.is(lines.length, 2);
  t.true(lines[1]!.includes(`,${id},chat,false,402,`), lines[1]);
});
