import { randomUUID } from 'node:crypto';
import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import type { RequestLogPage } from '../../api/contract/request-logs.ts';
import type { RefillLogPage, Stats } from '../../api/contract/users.ts';
import { type DailyStatDocument, type RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import { logLifetimeSeconds } from '../../shared/ledger/request-log-indexes-store.ts';
import type { RefillLogDocument } from '../../shared/ledger/refill-rows.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { callApi, type ErrorBody } from '../support/call-api.ts';
import { findRow } from '../support/observe.ts';
import { requestRow } from '../support/request-rows.ts';
import { startStack, useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** The history of an account: its requests, refills and daily statistics. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [vendor-key] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-sim }] }
  - { id: unreported, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-sim+nousage }] }
  - { id: refusing, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-sim+fail-400 }] }
  - { id: free-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13, free_requests: true }, routes: [{ upstream: vendor, model: gpt-sim }] }
`;

let stack: TestStack;
let vendor: VendorSimulator;

test.before(async () => {
  vendor = await startVendorSimulator({ logCapacity: 0 });
  stack = await startStack({ catalog: catalogOf(vendor.url) });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const get = <T>(apiKey: string, path: string) => callApi<T>(stack.url, apiKey, 'GET', path);

const messages = [{ role: 'user', content: 'hello there' }];
const hourMs = 60 * 60 * 1_000;

/** Inserts rows as the ledger writes them, oldest first. */
async function insertRows(
  accountId: string,
  count: number,
  describe: (i: number) => Partial<RequestLogDocument>,
  { mongo }: TestStack = stack,
): Promise<void> {
  const now = new Date();
  const rows = Array.from({ length: count }, (_, i) =>
    requestRow(accountId, { at: now, settledAt: now, ordinal: i + 1, promptTokens: i, ...describe(i) }),
  );
  await mongo.db.collection<RequestLogDocument>('request_logs').insertMany(rows);
}

test('a request is logged with every field, matching its response', async (t) => {
  const { apiKey } = await stack.createAccount();
  const response = await stack.post('/v1/chat/completions', apiKey, { model: 'chat', messages });
  const { usage } = (await response.json()) as { usage: Record<string, number> };
  const requestId = response.headers.get('x-request-id')!;
  const row = await findRow(stack, requestId);
  const { status, body } = await get<RequestLogPage>(apiKey, '/users/request_logs');
  t.is(status, 200);
  t.deepEqual(body, {
    total_count: 1,
    total_pages: 1,
    page: 1,
    page_size: 300,
    totals: {
      requests: 1,
      prompt_tokens: usage['prompt_tokens']!,
      completion_tokens: usage['completion_tokens']!,
      cost: usage['cost_request']!,
    },
    has_exact_total: true,
    items: [
      {
        created_at: row.at.toISOString(),
        success: true,
        response_code: 200,
        request_id: requestId,
        details: null,
        user_ip: '127.0.0.1',
        model_name: 'chat',
        prompt_tokens: usage['prompt_tokens']!,
        cache_read_tokens: row.cacheReadTokens,
        completion_tokens: usage['completion_tokens']!,
        reasoning_tokens: 0,
        total_time: usage['total_time']!,
        first_token_seconds: null,
        idempotency_key: false,
        cost_request: usage['cost_request']!,
        rates: { prompt: 7, cached_prompt: 7, cache_write: 7, completion: 13 },
        quantities: {
          prompt: usage['prompt_tokens']!,
          cached_prompt: 0,
          cache_write: 0,
          completion: usage['completion_tokens']!,
        },
        shortfall: 0,
        free_requests: false,
        is_free_request: false,
        estimated: false,
      },
    ],
  });
});

test('a failed request has its code and message, and free requests and our own token counts are marked', async (t) => {
  const { apiKey } = await stack.createAccount({ freeRequests: 1 });
  for (const model of ['refusing', 'free-chat', 'unreported']) {
    const response = await stack.post('/v1/chat/completions', apiKey, { model, messages });
    await response.text();
    await findRow(stack, response.headers.get('x-request-id')!);
  }
  const { items } = (await get<RequestLogPage>(apiKey, '/users/request_logs')).body;
  t.like(items[0], { model_name: 'unreported', success: true, estimated: true, free_requests: false });
  t.like(items[1], { model_name: 'free-chat', cost_request: 0, free_requests: true, is_free_request: true });
  t.like(items[2], { model_name: 'refusing', success: false, response_code: 400, cost_request: 0 });
  t.regex(items[2]!.details!, /^upstream_rejected: ./);
  t.is(items.length, 3);
});

test('requests that did not reach a model are not logged', async (t) => {
  const { apiKey } = await stack.createAccount({ balance: '0.00000001' });
  const send = async (body: object) => (await stack.post('/v1/chat/completions', apiKey, body)).status;
  t.is(await send({ model: 'chat', messages }), 402);
  t.is(await send({ model: 'chat', messages, temperature: 9 }), 422);
  t.is(await send({ model: 'none', messages }), 404);
  t.like((await get(apiKey, '/users/request_logs')).body, { total_count: 0, total_pages: 0, items: [] });
});

test('700 rows are three pages of at most 300, newest first, and the page after them is empty', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const start = Date.now() - hourMs;
  await insertRows(id, 700, (i) => ({
    at: new Date(start + i * 1_000),
    settledAt: new Date(start + i * 1_000),
  }));
  const read = async (page: number) =>
    (await get<RequestLogPage>(apiKey, `/users/request_logs?page=${page}`)).body;
  const pages = [await read(1), await read(2), await read(3), await read(4)];
  for (const [i, page] of pages.entries()) {
    t.like(page, { total_count: 700, total_pages: 3, page: i + 1, page_size: 300 });
  }
  t.deepEqual(
    pages.map((page) => page.items.length),
    [300, 300, 100, 0],
  );
  // Each row has a different number of prompt tokens, which identifies it.
  const rowNumbers = pages.flatMap((page) => page.items.map((item) => item.prompt_tokens));
  t.deepEqual(
    rowNumbers,
    Array.from({ length: 700 }, (_, i) => 699 - i),
  );
});

test('a full page is read in a single batch of its MongoDB cursor', async (t) => {
  const separate = await useStack(t, { workers: [] });
  const { id, apiKey } = await separate.createAccount();
  await insertRows(id, 400, () => ({}), separate);
  const countBatches = async (): Promise<number> =>
    Number((await separate.mongo.db.admin().command({ serverStatus: 1 }))['opcounters'].getmore);
  const before = await countBatches();
  const { body } = await callApi<RequestLogPage>(separate.url, apiKey, 'GET', '/users/request_logs');
  t.is(body.items.length, 300);
  t.is(await countBatches(), before);
});

test('rows older than 72 hours are never shown, whether or not MongoDB has removed them yet', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const expiredAt = new Date(Date.now() - logLifetimeSeconds * 1_000 - 1_000);
  const liveAt = new Date(Date.now() - logLifetimeSeconds * 1_000 + hourMs);
  // MongoDB may delete the expired rows at any time, and the pages must be the same before and after.
  await insertRows(id, 650, (i) => {
    const at = i < 200 ? expiredAt : liveAt;
    return { at, settledAt: at };
  });
  const read = async (page: number) =>
    (await get<RequestLogPage>(apiKey, `/users/request_logs?page=${page}`)).body;
  const before = [await read(1), await read(2), await read(3)];
  await stack.mongo.db.collection('request_logs').deleteMany({ accountId: id, ordinal: { $lte: 90 } });
  t.deepEqual([await read(1), await read(2), await read(3)], before);
  t.like(before[0], { total_count: 450, total_pages: 2 });
  t.deepEqual(
    before.map((page) => page.items.length),
    [300, 150, 0],
  );
  t.is(before[1]!.items.at(-1)!.prompt_tokens, 200);
});

test('an account whose rows have all expired has an empty log', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const expiredAt = new Date(Date.now() - logLifetimeSeconds * 1_000 - 1_000);
  await insertRows(id, 3, () => ({ at: expiredAt, settledAt: expiredAt }));
  t.like((await get(apiKey, '/users/request_logs')).body, { total_count: 0, total_pages: 0, items: [] });
});

test('rows on a page are ordered by request time, then by settlement time', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const start = Date.now() - hourMs;
  const requestedAt = [5, 1, 3, 3];
  await insertRows(id, 4, (i) => ({
    at: new Date(start + requestedAt[i]!),
    settledAt: new Date(start + 10 + i),
  }));
  const { items } = (await get<RequestLogPage>(apiKey, '/users/request_logs')).body;
  t.deepEqual(
    items.map((item) => item.prompt_tokens),
    [0, 3, 2, 1],
  );
});

test('accounts see only their own rows', async (t) => {
  const [ann, bob] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  await insertRows(ann.id, 2, () => ({}));
  t.like((await get(ann.apiKey, '/users/request_logs')).body, { total_count: 2 });
  t.like((await get(bob.apiKey, '/users/request_logs')).body, { total_count: 0 });
});

test('an invalid page number is a 422 that reports the parameter', async (t) => {
  const { apiKey } = await stack.createAccount();
  const invalidPages = [
    ...['0', '-1', '1.5', 'x', '', '1&page=2'].map((page) => `/users/request_logs?page=${page}`),
    '/users/refill_logs?page=0',
  ];
  for (const path of invalidPages) {
    const { status, body } = await get<ErrorBody>(apiKey, path);
    t.is(status, 422, path);
    t.like(body.error, { code: 'validation_failed', param: 'page' }, path);
    t.like((body.detail as unknown[])[0], { loc: ['query', 'page'] }, path);
  }
  for (const size of ['0', '101', 'x']) {
    const { status, body } = await get<ErrorBody>(apiKey, `/users/refill_logs?page_size=${size}`);
    t.is(status, 422);
    t.like((body.detail as unknown[])[0], { loc: ['query', 'page_size'] });
  }
  // Unknown parameters are ignored: the page size of this operation is fixed.
  t.like((await get(apiKey, '/users/request_logs?page_size=7')).body, { page_size: 300 });
});

test('the refill log shows a redeemed code as it was issued', async (t) => {
  const { apiKey } = await stack.createAccount({ balance: '5' });
  const refill = { balanceNano: parseRub('12.5')!, freeRequests: 3, expiresAt: null };
  const [code] = await new RefillCodeStore(stack.mongo.db).create(1, refill);
  const typed = code!.toLowerCase().replaceAll('-', '');
  t.is((await callApi(stack.url, apiKey, 'POST', '/users/redeem', { code: typed })).status, 200);
  const { body: page } = await get<RefillLogPage>(apiKey, '/users/refill_logs');
  const createdAt = page.items[0]!.created_at;
  t.true(Math.abs(Date.now() - Date.parse(createdAt)) < 60_000);
  t.deepEqual(page, {
    total_count: 1,
    total_pages: 1,
    page: 1,
    page_size: 20,
    items: [
      {
        created_at: createdAt,
        refill_code_redeemed: code!,
        balance_added: '12.5',
        free_requests_added: 3,
        source: 'code',
        note: null,
      },
    ],
  });
});

test('the refill log is paged by any size from 1 to 100, newest first', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const rows = Array.from({ length: 250 }, (_, i): RefillLogDocument => ({
    _id: randomUUID(),
    accountId: id,
    at: new Date(),
    ordinal: i + 1,
    code: `CODE-${i + 1}`,
    amountNano: BigInt(i + 1),
    freeRequests: 0,
  }));
  await stack.mongo.db.collection<RefillLogDocument>('refill_logs').insertMany(rows);
  const read = async (query: string) => {
    const { body } = await get<RefillLogPage>(apiKey, `/users/refill_logs${query}`);
    return { ...body, items: body.items.map((item) => item.refill_code_redeemed) };
  };
  const codes = (from: number, to: number): string[] =>
    Array.from({ length: from - to + 1 }, (_, i) => `CODE-${from - i}`);
  t.like(await read(''), { total_pages: 13, page_size: 20, items: codes(250, 231) });
  t.like(await read('?page=13'), { page: 13, items: codes(10, 1) });
  t.like(await read('?page=3&page_size=100'), { total_count: 250, total_pages: 3, items: codes(50, 1) });
  t.like(await read('?page=250&page_size=1'), { total_pages: 250, items: ['CODE-1'] });
  t.deepEqual((await read('?page=14')).items, []);
  t.deepEqual((await read('?page=9007199254740991')).items, []);
});

/** Inserts daily totals as the ledger writes them. */
async function insertDays(accountId: string, days: Readonly<Record<string, Partial<DailyStatDocument>>>) {
  const documents = Object.entries(days).map(([day, totals]): DailyStatDocument => ({
    _id: `${accountId}:${day}`,
    accountId,
    day,
    requests: 1,
    promptTokens: 0,
    cacheReadTokens: 0,
    completionTokens: 0,
    costNano: 0n,
    freeRequests: 0,
    appliedMs: 0,
    appliedSeq: 0,
    ...totals,
  }));
  await stack.mongo.db.collection<DailyStatDocument>('daily_stats').insertMany(documents);
}

const addDays = (day: string, days: number): string =>
  new Date(Date.parse(day) + days * 24 * hourMs).toISOString().slice(0, 10);

test('by default the statistics are those of the last 30 days and today', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const empty = (await get<Stats>(apiKey, '/users/stats')).body;
  const today = empty.period_end_date;
  t.deepEqual(empty, {
    period_start_date: addDays(today, -30),
    period_end_date: today,
    total_requests: 0,
    total_prompt_tokens: 0,
    total_completion_tokens: 0,
    total_cost: 0,
    total_free_requests: 0,
    daily_stats: [],
  });
  await insertDays(id, {
    [addDays(today, -31)]: { requests: 1_000 },
    [today]: { requests: 3, promptTokens: 5, costNano: 200_000_001n, freeRequests: 1 },
    [addDays(today, -29)]: {
      requests: 2,
      promptTokens: 7,
      cacheReadTokens: 4,
      completionTokens: 11,
      costNano: 100_000_000n,
    },
  });
  // The period is explicit, so that a midnight between the two calls changes nothing.
  const period = `start_date=${addDays(today, -29)}&end_date=${today}`;
  const { body } = await get<Stats>(apiKey, `/users/stats?${period}`);
  t.deepEqual(body, {
    period_start_date: addDays(today, -29),
    period_end_date: today,
    total_requests: 5,
    total_prompt_tokens: 12,
    total_completion_tokens: 11,
    // In doubles the two days would add up to 0.30000000100000004.
    total_cost: 0.300000001,
    total_free_requests: 1,
    daily_stats: [
      {
        stat_date: addDays(today, -29),
        request_count: 2,
        prompt_tokens: 7,
        cache_read_tokens: 4,
        completion_tokens: 11,
        cost_request: 0.1,
        free_requests: 0,
      },
      {
        stat_date: today,
        request_count: 3,
        prompt_tokens: 5,
        cache_read_tokens: 0,
        completion_tokens: 0,
        cost_request: 0.200000001,
        free_requests: 1,
      },
    ],
  });
});

test('a range includes its first and last day and no others', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const today = (await get<Stats>(apiKey, '/users/stats')).body.period_end_date;
  const days = [-4, -3, -2, -1].map((offset) => addDays(today, offset));
  await insertDays(id, Object.fromEntries(days.map((day) => [day, {}])));
  const range = `start_date=${days[1]}&end_date=${days[2]}`;
  const { body } = await get<Stats>(apiKey, `/users/stats?${range}`);
  t.like(body, { period_start_date: days[1], period_end_date: days[2], total_requests: 2 });
  t.deepEqual(
    body.daily_stats.map((day) => day.stat_date),
    days.slice(1, 3),
  );
});

test('real requests appear in the statistics of their day', async (t) => {
  const { apiKey } = await stack.createAccount();
  let cost = 0;
  for (let i = 0; i < 3; i++) {
    const response = await stack.post('/v1/chat/completions', apiKey, { model: 'chat', messages });
    cost = ((await response.json()) as { usage: { cost_request: number } }).usage.cost_request;
  }
  const stats = await waitFor('the totals', async () => {
    const { body } = await get<Stats>(apiKey, '/users/stats');
    return body.total_requests === 3 && body;
  });
  t.is(stats.total_cost, Number((3 * cost).toFixed(9)));
});

test('token totals beyond 32 bits are exact', async (t) => {
  const { id, apiKey } = await stack.createAccount();
  const today = (await get<Stats>(apiKey, '/users/stats')).body.period_end_date;
  await insertDays(id, { [today]: { promptTokens: 2_000_000_000 } });
  const days = stack.mongo.db.collection<{ _id: string; promptTokens: number }>('daily_stats');
  await days.updateOne({ _id: `${id}:${today}` }, { $inc: { promptTokens: 2_000_000_001 } });
  const { body } = await get<Stats>(apiKey, `/users/stats?end_date=${today}`);
  t.is(body.total_prompt_tokens, 4_000_000_001);
});

test('an invalid day, a day too long ago, or a reversed range is a 422 that reports the parameter', async (t) => {
  const { apiKey } = await stack.createAccount();
  const today = (await get<Stats>(apiKey, '/users/stats')).body.period_end_date;
  const invalid = [
    ['start_date=2026-02-30', 'start_date', /must be a valid date/],
    ['end_date=yesterday', 'end_date', /must be a valid date/],
    ['start_date=', 'start_date', /must be a valid date/],
    [`start_date=${addDays(today, -32)}`, 'start_date', /last 30 days/],
    [`end_date=${addDays(today, -32)}`, 'end_date', /last 30 days/],
    [`start_date=${addDays(today, -1)}&end_date=${addDays(today, -2)}`, 'start_date', /must not be after/],
  ] as const;
  for (const [query, name, message] of invalid) {
    const { status, body } = await get<ErrorBody>(apiKey, `/users/stats?${query}`);
    t.is(status, 422, query);
    t.is(body.error.code, 'validation_failed', query);
    const [issue] = body.detail as [{ loc: string[]; msg: string }];
    t.deepEqual(issue.loc, ['query', name], query);
    t.regex(issue.msg, message, query);
  }
});

for (const [setting, expected] of [
  ['on', '203.0.113.9'],
  ['off', '127.0.0.1'],
] as const) {
  test(`with TRUST_PROXY ${setting} the log shows the address of the ${setting === 'on' ? 'client' : 'connection'}`, async (t) => {
    const proxied = await useStack(t, { catalog: catalogOf(vendor.url), env: { TRUST_PROXY: setting } });
    const { apiKey } = await proxied.createAccount();
    const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' };
    const response = await proxied.post('/v1/chat/completions', apiKey, { model: 'chat', messages }, headers);
    t.is(response.status, 200);
    await response.text();
    await findRow(proxied, response.headers.get('x-request-id')!);
    const { body } = await callApi<RequestLogPage>(proxied.url, apiKey, 'GET', '/users/request_logs');
    t.is(body.items[0]!.user_ip, expected);
  });
}
