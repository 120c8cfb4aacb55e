import test from 'ava';
import type { AdminRequest, AdminSpend } from '../../shared/contract/admin-requests.ts';
import type { RequestLogPage } from '../../api/contract/request-logs.ts';
import { readAdmin, runAdmin } from '../support/admin.ts';
import { callApi } from '../support/call-api.ts';
import { findRow } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What operators see of a request: who served it, what vendors said and charge. Customers see none of it. */

const key = 'sk-secret-vendor-key-0123456789';
const always = 1_000_000_000;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  broken-vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [${key}] }
  good-vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [${key}] }
models:
  - id: chat
    type: chat
    context: 8192
    pricing: { prompt: 7000, completion: 13000 }
    routes:
      - { upstream: broken-vendor, model: "gpt+fail-503+echokey", weight: ${always} }
      - { upstream: good-vendor, model: gpt, cost: { prompt: 3000, completion: 5000 } }
  - { id: unpriced, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: good-vendor, model: gpt-unpriced }] }
  - { id: down, type: chat, context: 8192, pricing: { prompt: 7000, completion: 13000 }, routes: [{ upstream: broken-vendor, model: "gpt-down+fail-500", cost: { prompt: 1, completion: 1 } }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: good-vendor, model: emb, maxConcurrency: 1, cost: { in_cost_per_million: 3000.000000001 } }] }
  - { id: picture, type: image, context: 8192, size: [256x256], max_image_count: 4, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: good-vendor, model: img, cost: { type: image, cost_per_image: 0.9 } }] }
`;

let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack } = started);
});

const messages = [{ role: 'user', content: 'one two three' }];

interface Sent {
  readonly id: string;
  readonly status: number;
  /** Headers and body. */
  readonly text: string;
}

/** Sends a request, and waits until its row is in MongoDB. */
async function send(account: TestAccount, path: string, body: object): Promise<Sent> {
  const response = await stack.post(path, account.apiKey, body);
  const id = response.headers.get('x-request-id')!;
  const text = JSON.stringify([...response.headers]) + (await response.text());
  await findRow(stack, id);
  return { id, status: response.status, text };
}

const show = (id: string): Promise<AdminRequest> => readAdmin<AdminRequest>(stack.env, 'request', 'show', id);

const readOwnLog = (account: TestAccount): Promise<{ body: RequestLogPage }> =>
  callApi<RequestLogPage>(stack.url, account.apiKey, 'GET', '/users/request_logs');

/** Exact to the nano-rouble. */
const toNano = (roubles: number | null): number => Math.round((roubles ?? NaN) * 1e9);

test('a request that failed at one upstream and succeeded at the next shows both attempts, and what the vendor charges', async (t) => {
  const account = await stack.createAccount();
  const { id, status, text } = await send(account, '/v1/chat/completions', { model: 'chat', messages });
  t.is(status, 200);
  const request = await show(id);
  t.like(request, {
    id,
    account: account.id,
    model: 'chat',
    outcome: 'success',
    status: 200,
    code: null,
    upstream: 'good-vendor',
    attempts: [
      { upstream: 'broken-vendor', status: 503 },
      { upstream: 'good-vendor', status: 200, reason: null },
    ],
  });
  const [failed] = request.attempts;
  t.regex(failed!.reason!, /503/);
  t.false(JSON.stringify(request).includes(key));
  const { prompt_tokens: prompt, completion_tokens: completion } = request;
  t.is(toNano(request.vendor_cost), prompt! * 3_000_000 + completion! * 5_000_000);
  t.is(toNano(request.cost), prompt! * 7_000_000 + completion! * 13_000_000);
  t.is(toNano(request.margin), toNano(request.cost) - toNano(request.vendor_cost));
  // The customer sees nothing of this.
  const own = JSON.stringify((await readOwnLog(account)).body);
  for (const shown of [text, own]) t.notRegex(shown, /broken-vendor|good-vendor|vendor_cost|attempts|margin/);
});

test('of a failure, operators see the vendor’s reason beside what the customer was told', async (t) => {
  const account = await stack.createAccount();
  const { id, status, text } = await send(account, '/v1/chat/completions', { model: 'down', messages });
  t.is(status, 502);
  const request = await show(id);
  t.like(request, {
    outcome: 'error',
    status: 502,
    code: 'upstream_error',
    cost: 0,
    vendor_cost: 0,
    upstream: 'broken-vendor',
  });
  t.is(request.attempts.length, 3);
  for (const attempt of request.attempts) {
    t.is(attempt.status, 500);
    t.regex(attempt.reason!, /500/);
  }
  t.notRegex(request.details!, /500/);
  t.notRegex(text, /broken-vendor|500/);
});

test('it is unknown what a request costs the operator if the catalog does not say it', async (t) => {
  const account = await stack.createAccount();
  const { id } = await send(account, '/v1/chat/completions', { model: 'unpriced', messages });
  t.like(await show(id), { vendor_cost: null, margin: null, upstream: 'good-vendor' });
  const [spend] = await readAdmin<AdminSpend[]>(stack.env, 'spend', '--account', account.id, '--by', 'model');
  t.like(spend, { model: 'unpriced', requests: 1, vendor_cost: null, margin: null, costed_requests: 0 });
});

test('the cost of a merged embedding call is shared by tokens, and the shares sum to it', async (t) => {
  const accounts = await Promise.all([1, 2, 3].map(() => stack.createAccount()));
  const rows = await Promise.all(
    accounts.map(async (account, i) => {
      const input = Array.from({ length: i + 1 }, (_, j) => `text ${account.id} ${j}`);
      return await show((await send(account, '/v1/embeddings', { model: 'vectors', input })).id);
    }),
  );
  // The vendor counts words: three in each of the six inputs.
  const total = rows.reduce((sum, row) => sum + toNano(row.vendor_cost), 0);
  t.is(total, 18 * 3_000_000);
  for (const row of rows) {
    t.true(row.vendor_cost! > 0);
    t.is(row.upstream, 'good-vendor');
  }
});

test('images are billed by the vendor one by one', async (t) => {
  const account = await stack.createAccount();
  const body = { model: 'picture', prompt: 'a fox', n: 2 };
  const { id } = await send(account, '/v1/images/generations', body);
  t.like(await show(id), { images: 2, cost: 3, vendor_cost: 1.8, margin: 1.2 });
});

test('lines of a batch are billed by the vendor like single requests', async (t) => {
  const account = await stack.createAccount();
  const requests = ['one', 'two', 'three'].map((input, i) => ({
    custom_id: `line-${i}`,
    body: { model: 'vectors', input: `${input} ${account.id}` },
  }));
  const body = { endpoint: '/v1/embeddings', completion_window: '24h', requests };
  const { id } = (await (await stack.post('/v1/batches', account.apiKey, body)).json()) as { id: string };
  const row = await findRow(stack, id);
  const request = await show(id);
  t.like(request, { lines: 3, outcome: 'success', prompt_tokens: 6 });
  t.like(row, { lines: 3 });
  t.true(Math.abs(toNano(request.vendor_cost) - request.prompt_tokens! * 3_000.000000001 * 1_000) < 100);
  const [spend] = await readAdmin<AdminSpend[]>(
    stack.env,
    'spend',
    '--account',
    account.id,
    '--by',
    'account',
  );
  t.like(spend, {
    account: account.id,
    requests: 3,
    prompt_tokens: request.prompt_tokens!,
    cost: request.cost,
    vendor_cost: request.vendor_cost!,
  });
});

test('lists and sums of the commands select by account, model, outcome and day', async (t) => {
  const account = await stack.createAccount();
  const good = await send(account, '/v1/chat/completions', { model: 'chat', messages });
  const bad = await send(account, '/v1/chat/completions', { model: 'down', messages });
  const list = async (...args: string[]): Promise<string[]> =>
    (await readAdmin<AdminRequest[]>(stack.env, ...args)).map(({ id }) => id);
  const logs = ['account', 'logs', account.apiKey];
  t.deepEqual(await list(...logs), [bad.id, good.id]);
  t.deepEqual(await list(...logs, '--outcome', 'error'), [bad.id]);
  t.deepEqual(await list('request', 'list', '--account', account.id, '--model', 'chat'), [good.id]);
  const today = new Date().toISOString().slice(0, 10);
  t.deepEqual(await list(...logs, '--since', today, '--until', today), [bad.id, good.id]);
  t.deepEqual(await list(...logs, '--until', '2026-01-01'), []);
  const limited = await runAdmin(stack.env, ...logs, '--limit', '1', '--json');
  t.regex(limited.stderr, /the latest 1 of 2 requests/);
  t.is((JSON.parse(limited.stdout) as unknown[]).length, 1);

  const spendArgs = ['spend', '--account', account.id];
  const spend = await waitFor('the sums', async () => {
    const rows = await readAdmin<AdminSpend[]>(stack.env, ...spendArgs);
    return rows.length === 2 ? rows : null;
  });
  t.like(spend, [
    { account: account.id, model: 'chat', day: today, requests: 1, failures: 0 },
    { account: account.id, model: 'down', day: today, requests: 1, failures: 1, cost: 0 },
  ]);
  const csv = await runAdmin(stack.env, ...spendArgs, '--by', 'model', '--csv');
  t.deepEqual(
    csv.stdout.split('\r\n').map((line) => line.split(',').slice(0, 3).join()),
    ['model,requests,failures', 'chat,1,0', 'down,1,1', ''],
  );
});

test('a wrong option is a usage error, and an unknown request is told', async (t) => {
  const fail = async (...args: string[]): Promise<[number, string]> => {
    const { exitCode, stderr } = await runAdmin(stack.env, ...args, '--json');
    return [exitCode, stderr.split('\n')[0]!];
  };
  t.is((await fail('spend', '--by', 'hour'))[0], 2);
  t.is((await fail('spend', '--since', '2026-02-30'))[0], 2);
  t.is((await fail('spend', '--since', '2026-03-02', '--until', '2026-03-01'))[0], 2);
  t.is((await fail('spend', 'all'))[0], 2);
  t.is((await fail('request', 'list', '--outcome', 'bad'))[0], 2);
  t.is((await fail('request', 'list', '--since', 'yesterday'))[0], 2);
  const [code, message] = await fail('request', 'show', 'no-such-request');
  t.is(code, 1);
  t.regex(message, /No request "no-such-request"/);
  t.regex((await runAdmin(stack.env, 'spend', '--help')).stdout, /^ {2}spend \[--account/m);
});
