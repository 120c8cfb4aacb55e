import { randomUUID } from 'node:crypto';
import test from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { callJobsApi, createJob, readJob, respondAsync, waitForJob, type JobBody } from '../support/jobs.ts';
import { parseNamedEvents } from '../support/named-events.ts';
import { findReservations, toNano } from '../support/observe.ts';
import { startApiOf } from '../support/other-api.ts';
import { postJson } from '../support/post-json.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Durable jobs can be created, read, listed and cancelled at any process, and cost as much as any other request. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-narrow-key-0123456789], maxConcurrency: 1 }
  single: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-single-key-0123456789], maxConcurrency: 1, drops: [n] }
  limited: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-limited-key-0123456789] }
  wide: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-wide-key-0123456789], maxConcurrency: 8 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-600 }] }
  - { id: hung-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-60000 }] }
  - { id: busy-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: narrow, model: gpt+slow-60000 }] }
  - { id: busy-vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: narrow, model: emb }] }
  - { id: busy-picture, type: image, context: 8192, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: narrow, model: img }] }
  - { id: hung-pictures, type: image, context: 8192, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: single, model: img+slow-60000 }] }
  - { id: limited-picture, type: image, context: 8192, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: limited, model: img+fail-429+retry-5000 }] }
  - { id: queued-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: wide, model: gpt+slow-500 }] }
  - { id: broken-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+fail-400 }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: picture, type: image, context: 8192, size: [256x256, 1024x1024], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: img }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

const chats = '/v1/chat/completions';
const embeddings = '/v1/embeddings';
const images = '/v1/images/generations';

const chatOf = (model: string, content = 'Say hello.') => ({
  model,
  messages: [{ role: 'user', content }],
  max_tokens: 20,
});

const createWord = (): string => `w${randomUUID().replaceAll('-', '')}`;
const countCalls = (word: string): number =>
  vendor.requests.entries.filter((entry) => JSON.stringify(entry.body).includes(word)).length;

async function readSpent({ id }: TestAccount): Promise<bigint> {
  const { balanceNano } = await stack.readAccount(id);
  return toNano(100) - balanceNano;
}

const readReserved = async ({ id }: TestAccount): Promise<bigint> =>
  (await stack.readAccount(id)).reservedNano;

/** Removes the fields that differ between any two responses to the same request. */
const withoutTimes = (response: object): object => {
  const { id, created, usage, ...rest } = response as Record<string, unknown>;
  const { total_time: time, ...counts } = usage as Record<string, unknown>;
  return { ...rest, counts, types: [typeof id, typeof created, typeof time] };
};

const creations: readonly [string, string, object][] = [
  ['chat.completions', chats, chatOf('chat')],
  ['embeddings', embeddings, { model: 'vectors', input: ['cat', 'dog'] }],
  ['embeddings', embeddings, { model: 'vectors', input: ['cat', 'dog'], encoding_format: 'base64' }],
  ['images.generations', images, { model: 'picture', prompt: 'a lighthouse', size: '256x256' }],
];

for (const [operation, path, body] of creations) {
  test(`${JSON.stringify(body)} as a job has the response and the cost of the synchronous call`, async (t) => {
    const [synchronous, asynchronous] = [await stack.createAccount(), await stack.createAccount()];
    const syncResponse = await stack.post(path, synchronous.apiKey, body);
    t.is(syncResponse.status, 200);
    t.regex(syncResponse.headers.get('vary') ?? '', /\bPrefer\b/);
    const expected = (await syncResponse.json()) as object;

    const accepted = await stack.post(path, asynchronous.apiKey, body, respondAsync);
    t.is(accepted.status, 202);
    const job = (await accepted.json()) as JobBody;
    t.is(accepted.headers.get('location'), `/v1/jobs/${job.id}`);
    t.is(accepted.headers.get('preference-applied'), 'respond-async');
    t.regex(accepted.headers.get('vary') ?? '', /\bPrefer\b/);
    t.is(accepted.headers.get('x-request-id'), job.id);
    t.truthy(accepted.headers.get('x-ratelimit-remaining-requests'));
    t.like(job, { object: 'job', operation, cost_request: null, error: null, webhook: null });

    const ended = await waitForJob(stack, asynchronous, job.id);
    t.like(ended, { status: 'succeeded', progress: 1, position: null, eta_seconds: null, deadline_at: null });
    t.deepEqual(withoutTimes(ended.response!), withoutTimes(expected));
    t.is(ended.response!['id'], job.id);
    t.true(Date.parse(ended.expires_at!) - Date.parse(ended.ended_at!) === 24 * 60 * 60_000);
    const spent = await readSpent(asynchronous);
    t.is(spent, await readSpent(synchronous));
    t.is(toNano(ended.cost_request!), spent);
    t.deepEqual(await findReservations(stack, asynchronous.id), []);

    // Simulates a vendor that reported more than the account could pay: less was debited than the stored response
    // reports.
    await stack.redis.hset(redisKeys.job(asynchronous.id, job.id), 'cost', '123');
    const { cost_request: cost, response } = await readJob(stack, asynchronous, job.id);
    t.is(cost, 0.000000123);
    t.is((response!['usage'] as { cost_request: number | null }).cost_request, cost);
  });
}

test('a respond-async preference is recognized in a list, with parameters and in any case, and no other one creates a job', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const prefer of ['return=minimal, Respond-Async; foo="a, b"', 'handling=lenient , respond-async']) {
    const response = await stack.post(chats, apiKey, chatOf('chat'), { prefer });
    t.is(response.status, 202, prefer);
    await response.text();
  }
  for (const prefer of [
    'return="respond-async"',
    'foo; respond-async',
    'wait=10',
    'respond-asynchronously',
  ]) {
    const response = await stack.post(chats, apiKey, chatOf('chat'), { prefer });
    t.is(response.status, 200, prefer);
    t.false(response.headers.has('preference-applied'));
    await response.text();
  }
});

test('invalid headers, or a stream as a job, are a 422 that reports the header or field', async (t) => {
  const { apiKey } = await stack.createAccount();
  const unsafe = 'https://127.0.0.1/hook';
  const cases: [object, Record<string, string>, string[]][] = [
    [{ ...chatOf('chat'), stream: true }, respondAsync, ['body', 'stream']],
    [chatOf('chat'), { 'x-request-timeout-ms': '0' }, ['header', 'X-Request-Timeout-Ms']],
    [chatOf('chat'), { 'x-request-timeout-ms': '86400001' }, ['header', 'X-Request-Timeout-Ms']],
    [chatOf('chat'), { 'x-request-timeout-ms': '1.5' }, ['header', 'X-Request-Timeout-Ms']],
    [chatOf('chat'), { 'x-webhook-url': 'https://hooks.example/' }, ['header', 'X-Webhook-Url']],
    [chatOf('chat'), { ...respondAsync, 'x-webhook-url': unsafe }, ['header', 'X-Webhook-Url']],
  ];
  for (const [body, headers, loc] of cases) {
    const response = await stack.post(chats, apiKey, body, headers);
    t.is(response.status, 422, JSON.stringify(headers));
    const { detail, error } = (await response.json()) as {
      detail: { loc: string[] }[];
      error: { message: string };
    };
    t.deepEqual(detail[0]?.loc, loc);
    if (loc[1] === 'stream') t.regex(error.message, /stream.*Prefer: respond-async/);
  }
});

for (const [path, body] of [
  [chats, chatOf('chat')],
  [embeddings, { model: 'vectors', input: 'one' }],
  [images, { model: 'picture', prompt: 'a lighthouse' }],
] as const) {
  test(`${path}: a stream and a job in one request are a 422, and nothing is queued or reserved`, async (t) => {
    const account = await stack.createAccount();
    const response = await stack.post(path, account.apiKey, { ...body, stream: true }, respondAsync);
    t.is(response.status, 422);
    t.like(await response.json(), { detail: [{ loc: ['body', 'stream'] }] });
    t.deepEqual(await findReservations(stack, account.id), []);
    const listed = (await (await callJobsApi(stack, account, '')).json()) as { items: unknown[] };
    t.deepEqual(listed.items, []);
  });
}

test('a job shows its webhook', async (t) => {
  const account = await stack.createAccount();
  const url = 'https://hooks.example/jobs';
  const { webhook } = await createJob(stack, account, chats, chatOf('chat'), { 'x-webhook-url': url });
  t.like(webhook, { url, status: 'pending', attempts: 0, last_error: null });
});

test('a job of another account, or one that never existed, can be neither seen nor cancelled', async (t) => {
  const [owner, other] = [await stack.createAccount(), await stack.createAccount()];
  const { id } = await createJob(stack, owner, chats, chatOf('hung-chat'));
  for (const path of [`/${id}`, `/${id}/events`, `/${randomUUID()}`, '/nonsense', `/${id}x/events`]) {
    const response = await callJobsApi(stack, other, path);
    t.is(response.status, 404, path);
    t.is(((await response.json()) as { error: { code: string } }).error.code, 'not_found');
  }
  t.is((await callJobsApi(stack, other, `/${id}`, { method: 'DELETE' })).status, 404);
  t.deepEqual(((await (await callJobsApi(stack, other, '')).json()) as { items: unknown[] }).items, []);
  t.true(['queued', 'active'].includes((await readJob(stack, owner, id)).status));
  t.is((await fetch(`${stack.url}/v1/jobs/${id}`)).status, 401);
  await callJobsApi(stack, owner, `/${id}`, { method: 'DELETE' });
});

test('the list of jobs has pages, is newest first, can be filtered by status, and omits responses', async (t) => {
  const account = await stack.createAccount();
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.unshift((await createJob(stack, account, chats, chatOf('chat'))).id);
  for (const id of ids) await waitForJob(stack, account, id);
  const failed = (await createJob(stack, account, chats, chatOf('broken-chat'))).id;
  t.like(await waitForJob(stack, account, failed), {
    status: 'failed',
    error: { code: 'upstream_rejected', type: 'invalid_request_error' },
    response: null,
    cost_request: 0,
  });
  interface Page {
    readonly items: JobBody[];
  }
  const list = async (query: string) => (await (await callJobsApi(stack, account, query)).json()) as Page;
  const first = await list('?page_size=2');
  t.like(first, { total_count: 4, total_pages: 2, page: 1, page_size: 2 });
  t.deepEqual(
    [...first.items, ...(await list('?page_size=2&page=2')).items].map((job) => job.id),
    [failed, ...ids],
  );
  t.deepEqual(
    (await list('?status=succeeded')).items.map((job) => job.id),
    ids,
  );
  t.false('response' in first.items[0]!);
  t.is((await callJobsApi(stack, account, '?page_size=101')).status, 422);
  t.is((await callJobsApi(stack, account, '?status=done')).status, 422);
});

test('cancelling a running job aborts the vendor call, charges only for the work so far, and releases the rest of the reservation', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, { ...chatOf('hung-chat'), max_tokens: 5_000 });
  const active = await waitForJob(stack, account, id, (job) => job.status === 'active');
  t.truthy(active.started_at);
  t.is(active.position, null);
  const response = await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  t.is(response.status, 200);
  t.true(((await response.json()) as JobBody).cancel_requested);
  const ended = await waitForJob(stack, account, id);
  t.like(ended, { status: 'cancelled', error: { code: 'job_cancelled' } });
  t.is(toNano(ended.cost_request!), await readSpent(account));
  // The caller pays only for the prompt: the vendor streams, so it is known that there was no output.
  t.true(ended.cost_request! < 20 * 7e-6, String(ended.cost_request));
  t.is(await readReserved(account), 0n);
  const again = await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  t.is(again.status, 200);
  t.deepEqual(await again.json(), ended);
});

test('a cancelled job costs only the images already requested from the vendor', async (t) => {
  const account = await stack.createAccount();
  const word = createWord();
  const { id } = await createJob(stack, account, images, { model: 'hung-pictures', prompt: word, n: 3 });
  await waitFor('the vendor to be called', () => countCalls(word) === 1);
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  t.like(await waitForJob(stack, account, id), { status: 'cancelled', cost_request: 1.5 });
  t.is(countCalls(word), 1);
  t.is(await readSpent(account), toNano(1.5));
  t.is(await readReserved(account), 0n);
});

test('a job cancelled while it waits to retry after a rate limit error is not charged', async (t) => {
  const account = await stack.createAccount();
  const word = createWord();
  const { id } = await createJob(stack, account, images, { model: 'limited-picture', prompt: word, n: 2 });
  await waitFor('the vendor to be called', () => countCalls(word) >= 1);
  await waitForJob(stack, account, id, (job) => job.status === 'active');
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  t.like(await waitForJob(stack, account, id), { status: 'cancelled', cost_request: 0 });
  t.is(await readSpent(account), 0n);
  t.is(await readReserved(account), 0n);
});

test('if a request cannot start before its deadline, it is not charged or sent to a vendor: a job fails, and a synchronous caller gets a 504', async (t) => {
  const blocker = await stack.createAccount();
  const blocking = await createJob(stack, blocker, chats, chatOf('busy-chat'));
  await waitForJob(stack, blocker, blocking.id, (job) => job.status === 'active');
  const shortDeadline = { 'x-request-timeout-ms': '300' };
  const waiting: readonly [string, (word: string) => object][] = [
    [chats, (word) => chatOf('busy-chat', word)],
    [embeddings, (word) => ({ model: 'busy-vectors', input: word })],
    [images, (word) => ({ model: 'busy-picture', prompt: word })],
  ];
  await Promise.all(
    waiting.map(async ([path, bodyOf]) => {
      const account = await stack.createAccount();
      const words = [createWord(), createWord()] as const;
      const job = await createJob(stack, account, path, bodyOf(words[0]), shortDeadline);
      t.is(Date.parse(job.deadline_at!) - Date.parse(job.created_at), 300);
      t.is(typeof job.position, 'number');
      const response = await stack.post(path, account.apiKey, bodyOf(words[1]), shortDeadline);
      t.is(response.status, 504, path);
      t.is(((await response.json()) as { error: { code: string } }).error.code, 'deadline_exceeded');
      t.like(await waitForJob(stack, account, job.id), {
        status: 'failed',
        started_at: null,
        deadline_at: null,
        error: { code: 'deadline_exceeded' },
        cost_request: 0,
      });
      t.is(countCalls(words[0]) + countCalls(words[1]), 0);
      await waitFor('all reservations to be released', async () => (await readReserved(account)) === 0n);
      t.is(await readSpent(account), 0n);
    }),
  );
  await callJobsApi(stack, blocker, `/${blocking.id}`, { method: 'DELETE' });
});

test('a request beyond the job limit is rejected immediately, and nothing is stored', async (t) => {
  const account = await stack.createAccount();
  await stack.redis.hset(redisKeys.account(account.id), 'mqj', '1');
  const first = await createJob(stack, account, chats, chatOf('hung-chat'));
  const headers = { ...respondAsync, 'idempotency-key': randomUUID() };
  const before = await readReserved(account);
  for (let i = 0; i < 2; i++) {
    const rejected = await stack.post(chats, account.apiKey, chatOf('chat'), headers);
    t.is(rejected.status, 429);
    t.truthy(rejected.headers.get('retry-after'));
    t.is(((await rejected.json()) as { error: { code: string } }).error.code, 'too_many_jobs');
  }
  t.is(await readReserved(account), before);
  t.deepEqual(await findReservations(stack, account.id), []);
  await callJobsApi(stack, account, `/${first.id}`, { method: 'DELETE' });
  await waitForJob(stack, account, first.id);
  t.is((await stack.post(chats, account.apiKey, chatOf('chat'), headers)).status, 202);
});

test('requests with the same key and body are one job, for synchronous and asynchronous callers', async (t) => {
  const account = await stack.createAccount();
  const word = createWord();
  const key = { 'idempotency-key': randomUUID() };
  const body = chatOf('slow-chat', word);
  const job = await createJob(stack, account, chats, body, key);
  const [claim = ''] = await findKeys(stack.redis, `*:claim:${account.id}:*`);
  t.true((await stack.redis.ttl(claim)) > 24 * 60 * 60, 'the key expires while the job may still wait');
  const again = await stack.post(chats, account.apiKey, body, { ...respondAsync, ...key });
  t.is(again.status, 202);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.is(((await again.json()) as JobBody).id, job.id);
  const waiting = await stack.post(chats, account.apiKey, body, key);
  t.is(waiting.status, 200);
  t.is(waiting.headers.get('x-request-id'), job.id);
  const ended = await readJob(stack, account, job.id);
  t.deepEqual(await waiting.json(), ended.response as unknown);
  const late = await stack.post(chats, account.apiKey, body, { ...respondAsync, ...key });
  t.deepEqual(await late.json(), ended);
  t.is(countCalls(word), 1);
  t.is(await readSpent(account), toNano(ended.cost_request!));
});

test('if another caller cancels the job that a caller waits for, the waiting caller gets a retryable 409', async (t) => {
  const account = await stack.createAccount();
  const key = { 'idempotency-key': randomUUID() };
  const body = chatOf('hung-chat', createWord());
  const job = await createJob(stack, account, chats, body, key);
  const waiting = stack.post(chats, account.apiKey, body, key);
  await waitForJob(stack, account, job.id, ({ status }) => status === 'active');
  await callJobsApi(stack, account, `/${job.id}`, { method: 'DELETE' });
  const response = await waiting;
  t.is(response.status, 409);
  t.is(response.headers.get('x-should-retry'), 'false');
  const { error, detail } = (await response.json()) as {
    error: { code: string; message: string; type: string };
    detail: { message_ru: string };
  };
  t.is(error.code, 'job_cancelled');
  t.is(error.type, 'invalid_request_error');
  t.regex(error.message, /job with the same Idempotency-Key.*cancelled.*charged.*Send/);
  t.notRegex(error.message, /connection/);
  t.regex(detail.message_ru, /Задача.*отменена/);
  const again = await createJob(stack, account, chats, body, key);
  t.not(again.id, job.id);
  await callJobsApi(stack, account, `/${again.id}`, { method: 'DELETE' });
});

test('an asynchronous request gets the normal response if a synchronous one with its key already exists', async (t) => {
  const account = await stack.createAccount();
  const key = { 'idempotency-key': randomUUID() };
  const body = { model: 'vectors', input: Array.from({ length: 60 }, (_, i) => `text ${i} ${createWord()}`) };
  const first = await stack.post(embeddings, account.apiKey, body, key);
  const second = await stack.post(embeddings, account.apiKey, body, { ...respondAsync, ...key });
  t.is(second.status, 200);
  t.false(second.headers.has('preference-applied'));
  t.deepEqual(await second.json(), await first.json());
});

test('a large response of a job is returned completely', async (t) => {
  const account = await stack.createAccount();
  const input = Array.from({ length: 200 }, (_, i) => `text ${i}`);
  const job = await createJob(stack, account, embeddings, { model: 'vectors', input });
  const { response } = await waitForJob(stack, account, job.id);
  const data = response!['data'] as { readonly index: number; readonly embedding: number[] }[];
  t.deepEqual(
    data.map(({ index }) => index),
    input.map((_, i) => i),
  );
  t.true(data.every(({ embedding }) => embedding.length === 1536));
});

test('a job whose response cannot be read is returned without it, and with it once the store is available again', async (t) => {
  const account = await stack.createAccount();
  // Nothing listens at this address, so the other process cannot reach the object store.
  const s3 = { ...stack.config.s3, endpoint: 'http://127.0.0.1:9' };
  const apiWithoutStore = await startApiOf(stack, { ...stack.config, s3, publicUrl: stack.url });
  t.teardown(() => apiWithoutStore.stop());
  const key = { 'idempotency-key': randomUUID() };
  const body = { model: 'vectors', input: Array.from({ length: 60 }, (_, i) => `text ${i} ${createWord()}`) };
  const { id } = await createJob(stack, account, embeddings, body, key);
  const { response, response_error: noError, ...ended } = await waitForJob(stack, account, id);
  t.is(noError, null);
  t.truthy(response);
  const check = (job: JobBody): void => {
    const { response: missing, response_error: failure, ...rest } = job;
    t.deepEqual(rest, ended);
    t.is(missing, null);
    t.like(failure, { code: 'service_unavailable', type: 'api_error' });
    t.regex(failure!.message, /again/);
  };
  for (const method of ['GET', 'DELETE']) {
    const response = await callJobsApi(apiWithoutStore, account, `/${id}`, { method });
    t.is(response.status, 200);
    check((await response.json()) as JobBody);
  }
  const replayed = await postJson(`${apiWithoutStore.url}${embeddings}`, account.apiKey, body, {
    ...respondAsync,
    ...key,
  });
  t.is(replayed.status, 202);
  check((await replayed.json()) as JobBody);
  const events = await callJobsApi(apiWithoutStore, account, `/${id}/events`);
  const last = parseNamedEvents<JobBody>(await events.text()).at(-1)!;
  t.is(last.name, 'succeeded');
  check(last.data);
  const headers = { 'last-event-id': last.id };
  t.is((await callJobsApi(apiWithoutStore, account, `/${id}/events`, { headers })).status, 204);
  t.deepEqual((await readJob(stack, account, id)).response, response);
});

interface Observation {
  /** The times before and after the estimate was made. */
  readonly requestedAtMs: number;
  readonly respondedAtMs: number;
  readonly position: number;
  readonly etaSeconds: number | null;
}

/**
 * Estimates are at most half a second old. Once this time has passed since the first job ended, they include that job.
 */
const measuredAfterMs = 600;

/** An estimate and bounds on the actual time, which depend on when the estimate was requested and received. */
interface Estimate {
  readonly position: number;
  readonly estimatedMs: number;
  readonly minActualMs: number;
  readonly maxActualMs: number;
}

/**
 * The factor by which the worst estimate is outside the range from the fastest to the slowest job at the same position.
 * It is a range because pauses of the machine, which no estimate can predict, affect these jobs differently.
 */
function findLargestError(estimates: readonly Estimate[]): number {
  const errors = estimates.map(({ position, estimatedMs }) => {
    const alike = estimates.filter((one) => one.position === position);
    const minActualMs = Math.min(...alike.map((one) => one.minActualMs));
    const maxActualMs = Math.max(...alike.map((one) => one.maxActualMs));
    return Math.max(minActualMs / estimatedMs, estimatedMs / maxActualMs);
  });
  return Math.max(...errors);
}

/** The vendor accepts eight concurrent calls, one of which is reserved for synchronous callers. */
const jobSlots = 7;

/**
 * The ratio of the slowest two rounds of jobs to the fastest two. The vendor takes the same time for each call, so any
 * change in the pace of the queue is due to the machine.
 */
function findDrift(endedAtMs: readonly number[]): number {
  const sorted = endedAtMs.toSorted((a, b) => a - b);
  const rounds = sorted.slice(2 * jobSlots).map((atMs, i) => atMs - sorted[i]!);
  return Math.max(...rounds) / Math.min(...rounds);
}

// Serial tests run before all others. Concurrent tests would slow the jobs down, and their end would speed the jobs up.
test.serial(
  'the positions of fifty queued jobs never increase, and their estimated waits are right within a factor of three',
  async (t) => {
    const account = await stack.createAccount();
    const jobs = await Promise.all(
      Array.from({ length: 50 }, () => createJob(stack, account, chats, chatOf('queued-chat'))),
    );
    const observations = new Map<string, Observation[]>(jobs.map(({ id }) => [id, []]));
    let ended: JobBody[] = [];
    await waitFor('all jobs to end', async () => {
      const requestedAtMs = Date.now();
      const response = await callJobsApi(stack, account, '?page_size=100');
      const { items } = (await response.json()) as { items: JobBody[] };
      const respondedAtMs = Date.now();
      for (const { id, position, eta_seconds: etaSeconds } of items)
        if (position !== null)
          observations.get(id)!.push({ requestedAtMs, respondedAtMs, position, etaSeconds });
      ended = items.filter(({ status }) => status === 'succeeded');
      return ended.length === jobs.length;
    });
    const endMsOf = (job: JobBody): number => Date.parse(job.ended_at!);
    const endsMs = ended.map(endMsOf);
    const measuredAtMs = Math.min(...endsMs) + measuredAfterMs;
    const estimates: Estimate[] = [];
    for (const job of ended) {
      const jobObservations = observations.get(job.id)!;
      const positions = jobObservations.map(({ position }) => position);
      t.deepEqual(
        positions,
        positions.toSorted((a, b) => b - a),
        job.id,
      );
      for (const { requestedAtMs, respondedAtMs, position, etaSeconds } of jobObservations) {
        if (requestedAtMs < measuredAtMs || etaSeconds === null) continue;
        const [minActualMs, maxActualMs] = [endMsOf(job) - respondedAtMs, endMsOf(job) - requestedAtMs];
        estimates.push({ position, estimatedMs: etaSeconds * 1_000, minActualMs, maxActualMs });
      }
    }
    const firstPosition = Math.max(...jobs.map(({ id }) => observations.get(id)![0]?.position ?? 0));
    t.true(firstPosition >= 30, `the last job was at position ${firstPosition}`);
    t.true(estimates.length > 50);
    // Load from other processes cannot be predicted, so its effect is not an error of the estimate.
    const maxError = Math.max(3, 2 * findDrift(endsMs));
    const largestError = findLargestError(estimates);
    t.true(largestError <= maxError, `off by a factor of ${largestError}, ${maxError} allowed`);
  },
);
