import test, { type ExecutionContext } from 'ava';
import type { RequestLog, RequestLogPage } from '../../api/contract/request-logs.ts';
import type { Stats } from '../../api/contract/users.ts';
import type { Pricing } from '../../shared/contract/models.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { callApi } from '../support/call-api.ts';
import { findRow } from '../support/observe.ts';
import { requestRow } from '../support/request-rows.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What an account's owner can ask of its request log: filters, totals, a file, and what each request was charged by. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key] }
models:
  - { id: thinker, aliases: [muse], type: chat, context: 8192, reasoning: true, reasoning_effort: { default: high, choices: [none, high] }, pricing: { prompt: 70.3, completion: 130.7, input_cache_read: 7.1, input_cache_write: 90.9 }, routes: [{ upstream: vendor, model: gpt-reasoner-cached-cachewrite, drops: [max_tokens, temperature] }] }
  - { id: tiered, type: chat, context: 8192, pricing: { prompt: 1, completion: 2, overrides: [{ min_prompt_tokens: 5, prompt: 100.7, completion: 200.9 }] }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: down, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+fail-400 }] }
  - { id: flat, type: chat, context: 8192, pricing: { type: request, cost_per_request: 0.75, free_requests: true }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: timed, type: chat, context: 8192, pricing: { type: time, cost_per_second: 0.3 }, routes: [{ upstream: vendor, model: gpt+slow-20 }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7.7 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: picture, type: image, context: 8192, size: [256x256], image_quality: { default: standard, choices: [standard, hd] }, max_image_count: 4, pricing: { type: image, cost_per_image: 1.5, cost_per_image_quality: { hd: 2.25 } }, routes: [{ upstream: vendor, model: img }] }
`;

let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack } = started);
});

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const messages = [{ role: 'user', content: 'one two three four five six' }];

async function send(account: TestAccount, path: string, body: object): Promise<string> {
  const response = await stack.post(path, account.apiKey, body);
  const id = response.headers.get('x-request-id')!;
  await response.text();
  await findRow(stack, id);
  return id;
}

const insertRows = async (rows: RequestLogDocument[]): Promise<void> => {
  await stack.mongo.db.collection<RequestLogDocument>('request_logs').insertMany(rows);
};

const readLog = async ({ apiKey }: TestAccount, query = ''): Promise<RequestLogPage> =>
  (await callApi<RequestLogPage>(stack.url, apiKey, 'GET', `/users/request_logs?${query}`)).body;

const readCsv = ({ apiKey }: TestAccount, query = ''): Promise<Response> =>
  fetch(`${stack.url}/v1/users/request_logs?${query}`, {
    headers: { authorization: `Bearer ${apiKey}`, accept: 'text/csv' },
  });

/** Computes a cost as a page would, in nano-roubles. */
function multiply({ rates, quantities }: RequestLog): bigint {
  const perMillion = new Set(['prompt', 'cached_prompt', 'cache_write', 'completion', 'characters']);
  let sum = 0n;
  for (const [name, rate] of Object.entries(rates!)) {
    const quantity = parseRub(quantities![name as keyof typeof quantities])!;
    sum += parseRub(rate)! * quantity * (perMillion.has(name) ? 1n : 1_000_000n);
  }
  // A rate and a quantity have nine decimals each.
  const divisor = 1_000_000n * 1_000_000_000n;
  return (sum * 2n + divisor) / (divisor * 2n);
}

function assertSum(t: ExecutionContext, row: RequestLog): void {
  t.is(multiply(row), parseRub(row.cost_request)! + parseRub(row.shortfall)!, JSON.stringify(row));
}

test('what a request was charged by multiplies to its cost, whatever its prices are', async (t) => {
  const account = await stack.createAccount();
  const chat = (model: string, more = {}) => ['/v1/chat/completions', { model, messages, ...more }] as const;
  const calls = [
    chat('thinker', { reasoning_effort: 'high' }),
    chat('thinker', { stream: true, reasoning_effort: 'high' }),
    chat('tiered'),
    chat('tiered', { messages: [{ role: 'user', content: 'one' }] }),
    chat('flat'),
    chat('timed'),
    ['/v1/embeddings', { model: 'vectors', input: ['one two', 'three'] }] as const,
    ['/v1/images/generations', { model: 'picture', prompt: 'a fox', n: 2, quality: 'hd' }] as const,
  ];
  const ids = await Promise.all(calls.map(([path, body]) => send(account, path, body)));
  const { items } = await readLog(account);
  const [plain, streamed, long, short, flat, timed, vectors, picture] = ids.map((id) =>
    items.find(({ request_id: one }) => one === id)!,
  );
  t.deepEqual(
    items.filter(({ rates }) => rates === null),
    [],
  );
  for (const item of items) {
    assertSum(t, item);
    t.true(item.cost_request > 0);
  }
  for (const thought of [plain!, streamed!]) {
    t.deepEqual(thought.rates, { prompt: 70.3, cached_prompt: 7.1, cache_write: 90.9, completion: 130.7 });
    t.true(thought.quantities!.cached_prompt! > 0 && thought.quantities!.cache_write! > 0);
    t.true(thought.reasoning_tokens! > 0 && thought.reasoning_tokens! <= thought.completion_tokens);
  }
  t.is(plain!.first_token_seconds, null);
  t.true(streamed!.first_token_seconds! >= 0 && streamed!.first_token_seconds! <= streamed!.total_time);
  t.like(long, { rates: { prompt: 100.7, completion: 200.9 } });
  t.like(short, { rates: { prompt: 1, completion: 2 } });
  t.deepEqual([flat!.rates, flat!.quantities], [{ request: 0.75 }, { request: 1 }]);
  t.deepEqual(timed!.rates, { second: 0.3 });
  t.like(vectors, { reasoning_tokens: null, first_token_seconds: null, quantities: { prompt: 3 } });
  t.deepEqual([picture!.rates, picture!.quantities], [{ image: 2.25 }, { image: 2 }]);
});

test('rates are those of the request’s own price version, also after the prices have changed', async (t) => {
  const account = await stack.createAccount();
  const pricing = (prompt: number): Pricing => ({
    date_of_use: '2026-11-01',
    type: 'tokens',
    prompt,
    completion: 0,
    free_requests: false,
  });
  await stack.mongo.db.collection<{ _id: string; pricing: Pricing }>('prices').insertMany([
    { _id: 'thinker:old', pricing: pricing(10) },
    { _id: 'thinker:new', pricing: pricing(20) },
  ]);
  const row = (priceVersion: string, costNano: bigint, ordinal: number): RequestLogDocument =>
    requestRow(account.id, { model: 'thinker', priceVersion, promptTokens: 1_000, costNano, ordinal });
  await insertRows([
    row('old', 10_000_000n, 1),
    row('new', 20_000_000n, 2),
    row('lost', 1n, 3),
    requestRow(account.id, { ordinal: 4, priceVersion: 'old', model: 'thinker', lines: 3, costNano: 9n }),
    { ...row('old', 0n, 5), success: false, errorCode: 'upstream_error' },
    { ...row('old', 4_000_000n, 6), shortfallNano: 6_000_000n },
  ]);
  const { items } = await readLog(account);
  const prompts = items.toReversed().map(({ rates }) => rates?.prompt ?? null);
  t.deepEqual(prompts, [10, 20, null, null, null, 10]);
  for (const item of items) if (item.rates !== null) assertSum(t, item);
  t.like(items[0], { cost_request: 0.004, shortfall: 0.006 });
});

test('each filter selects its requests, all of them together, and the totals are those of what is selected', async (t) => {
  const account = await stack.createAccount();
  const start = Math.floor(Date.now() / minuteMs) * minuteMs - 5 * hourMs;
  const rows = Array.from({ length: 400 }, (_, i) =>
    requestRow(account.id, {
      model: i % 4 === 0 ? 'picture' : 'thinker',
      success: i % 10 !== 0,
      at: new Date(start + i * 1_000),
      ordinal: i + 1,
      promptTokens: i,
      completionTokens: 2,
      costNano: BigInt(i),
      ...(i === 7 && { lines: 5 }),
    }),
  );
  await insertRows(rows);
  await insertRows([requestRow((await stack.createAccount()).id, { model: 'picture' })]);
  const timeOf = (i: number): string => new Date(start + i * 1_000).toISOString();
  const cases: [query: string, selects: (row: RequestLogDocument, i: number) => boolean][] = [
    ['', () => true],
    ['model=thinker', ({ model }) => model === 'thinker'],
    // Another id of the model.
    ['model=muse', ({ model }) => model === 'thinker'],
    ['model=none', () => false],
    ['outcome=error', ({ success }) => !success],
    ['outcome=success', ({ success }) => success],
    [`since=${timeOf(390)}`, (_, i) => i >= 390],
    [`until=${timeOf(10)}`, (_, i) => i < 10],
    [`request_id=${rows[7]!._id}`, (_, i) => i === 7],
    [`request_id=${rows[7]!._id}&model=picture`, () => false],
    [`request_id=${rows[7]!._id}&outcome=success&since=${timeOf(7)}`, (_, i) => i === 7],
    [`request_id=${rows[7]!._id}&until=${timeOf(7)}`, () => false],
    [
      `model=picture&outcome=error&since=${timeOf(100)}&until=${timeOf(300)}`,
      ({ model, success }, i) => model === 'picture' && !success && i >= 100 && i < 300,
    ],
  ];
  for (const [query, selects] of cases) {
    const selected = rows.filter(selects).toReversed();
    const sum = (of: (row: RequestLogDocument) => number): number =>
      selected.reduce((total, row) => total + of(row), 0);
    const pages = [await readLog(account, query), await readLog(account, `${query}&page=2`)];
    for (const page of pages) {
      t.like(page, { total_count: selected.length, has_exact_total: true, page_size: 300 }, query);
      t.is(page.total_pages, Math.ceil(selected.length / 300));
      t.deepEqual(
        page.totals,
        {
          requests: sum(({ lines = 1 }) => lines),
          prompt_tokens: sum(({ promptTokens }) => promptTokens),
          completion_tokens: sum(({ completionTokens }) => completionTokens),
          cost: sum(({ costNano }) => Number(costNano)) / 1e9,
        },
        query,
      );
    }
    t.is(pages[0]!.items.length, Math.min(300, selected.length), query);
    const ids = selected.map(({ _id }) => _id);
    t.deepEqual(
      pages.flatMap(({ items }) => items.map((item) => item.request_id)),
      ids,
      query,
    );
    const csv = await (await readCsv(account, query)).text();
    t.deepEqual(
      csv
        .split('\r\n')
        .slice(1, -1)
        .map((line) => line.split(',')[1]),
      ids,
      query,
    );
  }
});

test('filters do not reach beyond 72 hours', async (t) => {
  const account = await stack.createAccount();
  const [old, recent] = [73, 71].map((hours) => new Date(Date.now() - hours * hourMs));
  await insertRows([
    requestRow(account.id, { _id: `old-${account.id}`, at: old!, settledAt: old! }),
    requestRow(account.id, { _id: `recent-${account.id}`, at: recent!, settledAt: recent!, ordinal: 2 }),
  ]);
  for (const query of ['', 'outcome=success', 'since=2020-01-01', 'model=chat']) {
    const { items, totals } = await readLog(account, query);
    t.deepEqual(
      items.map(({ request_id: id }) => id),
      [`recent-${account.id}`],
    );
    t.is(totals.requests, 1);
    t.is((await (await readCsv(account, query)).text()).split('\r\n').length, 3);
  }
  t.is((await readLog(account, `request_id=old-${account.id}`)).total_count, 0);
});

test('a file has every column, exact amounts, and no formula', async (t) => {
  const account = await stack.createAccount();
  await insertRows([
    requestRow(account.id, {
      success: false,
      responseCode: 400,
      errorCode: 'upstream_rejected',
      details: 'bad "value", or\nanother',
      model: '=cmd',
      costNano: 1n,
    }),
  ]);
  const response = await readCsv(account);
  t.is(response.headers.get('content-type'), 'text/csv; charset=utf-8');
  t.regex(response.headers.get('content-disposition')!, /attachment; filename="requests.csv"/);
  t.regex(response.headers.get('vary') ?? '', /accept/i);
  const text = await response.text();
  const [names] = text.split('\r\n');
  t.is(names!.split(',').length, 33);
  t.true(names!.startsWith('created_at,request_id,model_name,success,response_code,details,prompt_tokens,'));
  t.true(text.includes(`,"'=cmd",false,400,"upstream_rejected: bad ""value"", or\nanother",3,`));
  t.true(text.includes(',0.000000001,0,'));
});

test('a wrong filter is a 422 that names it', async (t) => {
  const account = await stack.createAccount();
  const cases: [query: string, param: string][] = [
    ['outcome=failure', 'outcome'],
    ['outcome=error&outcome=success', 'outcome'],
    ['model=', 'model'],
    [`model=${'m'.repeat(129)}`, 'model'],
    ['since=yesterday-at-noon', 'since'],
    ['since=2026-02-30', 'since'],
    ['until=2026-11-30T12:00', 'until'],
    ['until=12', 'until'],
    ['since=2026-11-30&until=2026-11-29', 'since'],
    ['request_id=', 'request_id'],
    [`request_id=${'r'.repeat(201)}`, 'request_id'],
  ];
  for (const [query, param] of cases) {
    const path = `/users/request_logs?${query}`;
    const { status, body } = await callApi(stack.url, account.apiKey, 'GET', path);
    t.is(status, 422, query);
    t.like(body.error, { code: 'validation_failed', param }, query);
    t.is((await readCsv(account, query)).status, 422);
  }
});

test('statistics by model have an element for each day and model, and the same totals', async (t) => {
  const account = await stack.createAccount({ freeRequests: 1 });
  await send(account, '/v1/chat/completions', { model: 'flat', messages });
  await send(account, '/v1/chat/completions', { model: 'thinker', messages });
  await send(account, '/v1/embeddings', { model: 'vectors', input: 'one two' });
  const read = async (query: string): Promise<Stats> =>
    (await callApi<Stats>(stack.url, account.apiKey, 'GET', `/users/stats?${query}`)).body;
  // The ledger writes the rows first and the sums after them.
  const byDay = await waitFor('the statistics of three requests', async () => {
    const stats = await read('');
    return stats.total_requests === 3 && stats;
  });
  const byModel = await read('by=model');
  t.deepEqual({ ...byModel, daily_stats: [] }, { ...byDay, daily_stats: [] });
  t.deepEqual(
    byModel.daily_stats.map(({ model_name: name, free_requests: free }) => [name, free]),
    [
      ['flat', 1],
      ['thinker', 0],
      ['vectors', 0],
    ],
  );
  t.false('model_name' in byDay.daily_stats[0]!);
  const { status } = await callApi(stack.url, account.apiKey, 'GET', '/users/stats?by=account');
  t.is(status, 422);
});
