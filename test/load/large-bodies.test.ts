import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { startStack, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { startUpload, type Upload } from '../support/uploads.ts';
import { waitFor } from '../support/wait-for.ts';

/** Bodies over 64 KB: which callers may send them, how much memory of the process they use, and for how long. */

const embeddings = '/v1/embeddings';
const large = { model: 'use-lite-en-512', input: 'word '.repeat(80_000) };
const small = { model: 'use-lite-en-512', input: 'small' };
const largestBytes = 79_000_000;

const catalogOf = (models: readonly string[]): string => `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:9/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: use-lite-en-512, type: embedding, context: 8192, dimensions: { default: 512 }, pricing: { in_cost_per_million: 10 }, routes: [{ upstream: builtin, model: use-lite-en-512 }] }
  - { id: heavy, type: embedding, context: 8192, dimensions: { default: 1536 }, rpm_coefficient: 3, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: vendor, model: m }] }
${models.map((model) => `  - ${model}\n`).join('')}`;

let stack: TestStack;
test.before(async () => {
  stack = await startStack({ catalog: catalogOf([]) });
});
test.after.always(() => stack.close());

const upload = (on: TestStack, { apiKey }: TestAccount, headers = {}): Upload =>
  startUpload(`${on.url}${embeddings}`, apiKey, headers);

const codeOf = (text: string): string => (JSON.parse(text) as { error: { code: string } }).error.code;

const readUsedRequests = async (on: TestStack, { id }: TestAccount): Promise<number> =>
  Number(await on.redis.hget(redisKeys.account(id), 'win'));

test('an account over its share of memory gets a 503 with retry-after before its body is read, and others are not affected', async (t) => {
  const stack = await useStack(t, { api: { requestMemoryBytes: 2_000_000 } });
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const unfinished = upload(stack, account, { 'content-length': 1_000_000 });
  unfinished.request.write('{"model":');
  t.not(
    (await stack.post(embeddings, account.apiKey, large)).status,
    503,
    'a declared length alone uses no memory',
  );
  unfinished.request.write(`"${'a'.repeat(900_000)}`);
  const used = await readUsedRequests(stack, account);
  const rejected = await waitFor('a 503', async () => {
    const declared = upload(stack, account, { 'content-length': 800_000 });
    const timer = setTimeout(() => declared.request.destroy(), 200);
    const response = await declared.answer.catch(() => null);
    clearTimeout(timer);
    return response?.status === 503 ? response : null;
  });
  t.truthy(rejected.headers['retry-after']);
  t.is(codeOf(rejected.text), 'queue_full');
  t.true((await readUsedRequests(stack, account)) >= used, 'rejected requests count against the rate limit');
  t.is((await stack.post(embeddings, account.apiKey, small)).status, 200);
  t.not((await stack.post(embeddings, other.apiKey, large)).status, 503, 'another account gets memory');
  unfinished.request.destroy();
  await waitFor(
    'the memory to be freed',
    async () => (await stack.post(embeddings, account.apiKey, large)).status !== 503,
  );
});

test('a body of many small values reserves the memory that its parsed form uses', async (t) => {
  const stack = await useStack(t, { workers: [], api: { requestMemoryBytes: 16_000_000 } });
  const [account, other] = await Promise.all([stack.createAccount({ rpm: 10_000 }), stack.createAccount()]);
  const unfinished = upload(stack, account, { 'content-length': 1_000_000 });
  // 180 KB as JSON, but four megabytes in memory.
  unfinished.request.write(`{"model":"none","input":[${'{},'.repeat(60_000)}`);
  const body = { model: 'none', input: ' '.repeat(4_500_000) };
  const isRejected = async ({ apiKey }: TestAccount): Promise<boolean> =>
    (await stack.post(embeddings, apiKey, body)).status === 503;
  await waitFor('a 503', async () => await isRejected(account));
  t.false(await isRejected(other));
  unfinished.request.destroy();
  await waitFor('the memory to be freed', async () => !(await isRejected(account)));
});

test('seven slow uploads of one account leave enough memory for the largest body of another', async (t) => {
  const stack = await useStack(t, { api: { requestMemoryBytes: 8_000_000 } });
  const [slow, unaffected] = [await stack.createAccount(), await stack.createAccount()];
  const uploads = Array.from({ length: 7 }, () => upload(stack, slow, { 'content-length': 2_000_000 }));
  for (const { request } of uploads) request.write(`{"model":"${'a'.repeat(1_900_000)}`);
  const outcome = await Promise.race([
    Promise.all(uploads.slice(0, 2).map((one) => one.answer)),
    waitFor('some uploads to be rejected', async () => {
      const done = await Promise.all(
        uploads.map(async ({ answer }) => (await Promise.race([answer, delay(20, null)]))?.status),
      );
      return done.filter((status) => status === 503).length >= 4 ? done : null;
    }),
  ]);
  t.truthy(outcome);
  const body = { model: 'nope', input: Array.from({ length: 30 }, (_, i) => `${i} word`.repeat(10_000)) };
  t.is((await stack.post(embeddings, unaffected.apiKey, body)).status, 404, 'the body is read to its end');
  for (const { request } of uploads) request.destroy();
});

const rejections = [
  { description: 'without money', balance: '0', change: {}, status: 402, code: 'insufficient_balance' },
  {
    description: 'that is banned',
    balance: '100',
    change: { ban: '1' },
    status: 403,
    code: 'account_banned',
  },
  {
    description: 'at its rate limit',
    balance: '100',
    change: { rpm: '0' },
    status: 429,
    code: 'rate_limit_exceeded',
  },
];
for (const { description, balance, change, status, code } of rejections) {
  test(`an account ${description} is rejected before its large body is read, with or without a declared length`, async (t) => {
    const account = await stack.createAccount({ balance });
    if (Object.keys(change).length > 0) await stack.redis.hset(redisKeys.account(account.id), change);
    const declared = upload(stack, account, { 'content-length': largestBytes });
    const response = await declared.answer;
    t.is(response.status, status);
    t.is(codeOf(response.text), code);
    t.is(response.headers['connection'], 'close');
    t.true(response.bytesSent < 1_000, `${response.bytesSent} bytes were sent`);
    if (status === 402) t.is(response.headers['x-ratelimit-remaining-requests'], '99999');
    const chunked = upload(stack, account);
    chunked.request.write(`{"model":"${'a'.repeat(70_000)}`);
    t.is((await chunked.answer).status, status);
    // A client that sends the whole body before it reads gets the response as well.
    const whole = await stack.post(embeddings, account.apiKey, { input: 'a'.repeat(5_000_000) });
    t.is(whole.status, status);
  });
}

test('a replaced key is rejected before a large body is read', async (t) => {
  const account = await stack.createAccount();
  await fetch(`${stack.url}/v1/users/regenerate_api_key`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${account.apiKey}` },
  });
  const { status, bytesSent } = await upload(stack, account, { 'content-length': largestBytes }).answer;
  t.is(status, 401);
  t.true(bytesSent < 1_000);
});

test('a client with Expect gets a 100 Continue only if its body will be read', async (t) => {
  const [funded, unfunded] = [await stack.createAccount(), await stack.createAccount({ balance: '0' })];
  const body = JSON.stringify({ model: 'nope', input: 'a'.repeat(100_000) });
  const headers = { 'content-length': body.length, expect: '100-continue' };
  const rejected = upload(stack, unfunded, headers);
  rejected.request.once('continue', () => t.fail('got a 100 Continue'));
  t.is((await rejected.answer).status, 402);
  const unknown = upload(stack, { ...funded, apiKey: 'mg-unknown' }, { ...headers, 'content-length': 100 });
  unknown.request.once('continue', () => t.fail('got a 100 Continue'));
  t.is((await unknown.answer).status, 401);
  const accepted = upload(stack, funded, headers);
  accepted.request.once('continue', () => accepted.request.end(body));
  t.is((await accepted.answer).status, 404);
});

test('a large request uses one rate limit slot when its body starts, and the rest of its model’s coefficient when it is admitted', async (t) => {
  const account = await stack.createAccount({ rpm: 10 });
  const invalid = await stack.post(embeddings, account.apiKey, { model: 'heavy', text: 'a'.repeat(70_000) });
  t.is(invalid.status, 422);
  t.is(invalid.headers.get('x-ratelimit-remaining-requests'), '9');
  t.is(await readUsedRequests(stack, account), 1);
  const caller = new AbortController();
  const input = Array.from({ length: 20 }, () => 'word '.repeat(1_000));
  fetch(`${stack.url}${embeddings}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'heavy', input }),
    signal: caller.signal,
  }).catch(() => undefined);
  await waitFor('the admission', async () => (await readUsedRequests(stack, account)) === 4);
  caller.abort();
});

test('an account without money may send a large body to a free model, but not to a paid one', async (t) => {
  const freeModel =
    '{ id: gratis, type: embedding, context: 8192, dimensions: { default: 1536 }, ' +
    'pricing: { in_cost_per_million: 0 }, routes: [{ upstream: vendor, model: m }] }';
  const stack = await useStack(t, { catalog: catalogOf([freeModel]), workers: [] });
  const { apiKey } = await stack.createAccount({ balance: '0' });
  const input = Array.from({ length: 20 }, () => 'word '.repeat(9_000));
  const free = await stack.post(embeddings, apiKey, { model: 'gratis', input });
  t.is(codeOf(await free.text()), 'content_too_long', 'the input was tokenized');
  const rejected = await stack.post(embeddings, apiKey, { model: 'heavy', input });
  t.is(rejected.status, 402);
  t.false((await rejected.text()).includes('This request may cost'), 'the input was not tokenized');
});

test('the stored response of a large request is replayed even if the balance is used up, and the replay counts against the rate limit', async (t) => {
  const account = await stack.createAccount();
  const key = { 'idempotency-key': 'once' };
  const body = { model: 'use-lite-en-512', input: Array.from({ length: 20 }, () => 'word '.repeat(1_000)) };
  const first = await stack.post(embeddings, account.apiKey, body, key);
  t.is(first.status, 200);
  await stack.redis.hset(redisKeys.account(account.id), 'bal', '0');
  const again = await stack.post(embeddings, account.apiKey, body, key);
  t.is(again.status, 200);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.is(await again.text(), await first.text());
  t.is(await readUsedRequests(stack, account), 2);
  t.is((await stack.post(embeddings, account.apiKey, body, { 'idempotency-key': 'other' })).status, 402);
});

test('bodies that arrive too slowly or not at all are rejected with a 408', async (t) => {
  t.timeout(90_000);
  const stack = await useStack(t, { workers: [], api: { requestMemoryBytes: 2_000_000 } });
  const account = await stack.createAccount();
  const startedAt = performance.now();
  const readResult = async ({ answer }: Upload) => {
    const { status, text, headers } = await answer;
    return {
      status,
      text,
      isClosed: headers['connection'] === 'close',
      afterMs: performance.now() - startedAt,
    };
  };
  const never = upload(stack, account, { 'content-length': 500 });
  const trickling = upload(stack, account, { 'content-length': 900_000 });
  trickling.request.write(`{"model":"${'a'.repeat(66_000)}`);
  const timer = setInterval(() => trickling.request.write('a'), 500);
  const other = await stack.createAccount();
  const stalled = upload(stack, other, { 'content-length': 1_500_000 });
  stalled.request.write(`{"model":"${'a'.repeat(1_100_000)}`);
  const slow = await readResult(trickling);
  clearInterval(timer);
  t.is(slow.status, 408);
  t.regex(slow.text, /arrives at less than 32 KB per second/);
  t.true(slow.afterMs > 5_000 && slow.afterMs < 20_000, `after ${slow.afterMs} ms`);
  const [missing, stopped] = await Promise.all([readResult(never), readResult(stalled)]);
  t.is(missing.status, 408);
  t.regex(missing.text, /was not received within 30 s/);
  t.is(stopped.status, 408);
  t.regex(stopped.text, /No more of the body was received for 30 s/);
  t.true(stopped.isClosed);
  const body = JSON.stringify({ model: 'nope', input: 'a'.repeat(1_500_000) });
  await waitFor(
    'the memory to be freed',
    async () => (await stack.post(embeddings, other.apiKey, body)).status === 404,
  );
});
