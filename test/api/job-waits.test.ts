import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import OpenAI from 'openai';
import { maxCallsPerAccount } from '../../shared/contract/operation.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { callJobsApi, createJob, respondAsync, waitForJob, type JobBody } from '../support/jobs.ts';
import { toNano } from '../support/observe.ts';
import { startApiOf } from '../support/other-api.ts';
import { postJson } from '../support/post-json.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Callers that wait for their jobs: `Prefer: respond-async, wait=N` and `GET /v1/jobs/{id}?wait=N`. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  gem: { kind: gemini, baseUrl: "${vendorUrl}", apiKeys: [vendor-key-0123456789] }
models:
  - { id: fetching-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: gem, model: gemini-sim }] }
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-2500 }] }
  - { id: hung-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-60000 }] }
  - { id: broken-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+fail-400 }] }
  - { id: down-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+fail-500 }] }
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

const waiting = (seconds: number) => ({ prefer: `respond-async, wait=${seconds}` });

/** Removes the fields that differ between any two responses to the same request. */
function withoutTimes(response: object): object {
  const { id, created, usage, ...rest } = response as Record<string, unknown>;
  const { total_time: time, ...counts } = usage as Record<string, unknown>;
  return { ...rest, counts, types: [typeof id, typeof created, typeof time] };
}

/** The headers that tell one response from another. */
const namesOf = ({ headers }: Response): string[] =>
  [...headers.keys()].filter((name) => name !== 'preference-applied' && name !== 'etag').toSorted();

async function readSpent({ id }: TestAccount): Promise<bigint> {
  return toNano(100) - (await stack.readAccount(id)).balanceNano;
}

async function listJobs(account: TestAccount): Promise<JobBody[]> {
  return ((await (await callJobsApi(stack, account, '')).json()) as { items: JobBody[] }).items;
}

for (const [path, body] of [
  [chats, chatOf('chat')],
  [embeddings, { model: 'vectors', input: ['cat', 'dog'] }],
  [embeddings, { model: 'vectors', input: ['cat', 'dog'], encoding_format: 'base64' }],
  [embeddings, { model: 'vectors', input: Array.from({ length: 80 }, (_, i) => `text ${i}`) }],
  [images, { model: 'picture', prompt: 'a lighthouse', size: '256x256' }],
] as const) {
  const name = JSON.stringify(body).slice(0, 80);
  // Serial, because the vendor's count for a call is shared among the inputs of all requests in it.
  test.serial(
    `${name}: a caller that waits gets the response, headers and cost of the synchronous call`,
    async (t) => {
      const [one, other] = [await stack.createAccount(), await stack.createAccount()];
      const expected = await stack.post(path, one.apiKey, body);
      const response = await stack.post(path, other.apiKey, body, waiting(30));
      t.is(response.status, 200);
      t.is(response.headers.get('preference-applied'), 'wait=30');
      t.regex(response.headers.get('vary') ?? '', /\bPrefer\b/);
      t.false(response.headers.has('location'));
      t.deepEqual(namesOf(response), namesOf(expected));
      const received = (await response.json()) as object;
      t.deepEqual(withoutTimes(received), withoutTimes((await expected.json()) as object));
      const [job] = await listJobs(other);
      t.is(response.headers.get('x-request-id'), job!.id);
      t.is(job!.status, 'succeeded');
      t.is(await readSpent(other), await readSpent(one));
      t.is(toNano(job!.cost_request!), await readSpent(other));
    },
  );
}

test('a caller whose job takes longer than it waits gets the job, at the time that it named', async (t) => {
  const account = await stack.createAccount();
  const startedMs = performance.now();
  const response = await stack.post(chats, account.apiKey, chatOf('hung-chat'), waiting(1));
  const tookMs = performance.now() - startedMs;
  t.is(response.status, 202);
  t.true(tookMs >= 1_000 && tookMs < 20_000, `${tookMs} ms`);
  const job = (await response.json()) as JobBody;
  t.is(response.headers.get('preference-applied'), 'respond-async');
  t.is(response.headers.get('location'), `/v1/jobs/${job.id}`);
  t.is(response.headers.get('x-request-id'), job.id);
  t.like(job, { status: 'active', response: null });
  await callJobsApi(stack, account, `/${job.id}`, { method: 'DELETE' });
});

test('a wait is limited to 600 seconds, and one that is malformed is no wait', async (t) => {
  const account = await stack.createAccount();
  const long = await stack.post(chats, account.apiKey, chatOf('chat'), waiting(100_000));
  t.is(long.status, 200);
  t.is(long.headers.get('preference-applied'), 'wait=600');
  for (const prefer of ['respond-async, wait=soon', 'respond-async; wait=20']) {
    const response = await stack.post(chats, account.apiKey, chatOf('chat'), { prefer });
    t.is(response.status, 202, prefer);
    t.is(response.headers.get('preference-applied'), 'respond-async');
  }
  const alone = await stack.post(chats, account.apiKey, chatOf('chat'), { prefer: 'wait=20' });
  t.is(alone.status, 200);
  t.false(alone.headers.has('preference-applied'));
});

for (const model of ['broken-chat', 'down-chat']) {
  test(`a caller that waits for a job of ${model} gets the error of the synchronous call, and pays nothing`, async (t) => {
    const account = await stack.createAccount();
    const read = async (headers: Record<string, string>) => {
      const response = await stack.post(chats, account.apiKey, chatOf(model), headers);
      return { status: response.status, names: namesOf(response), body: (await response.json()) as object };
    };
    const expected = await read({});
    const received = await read(waiting(60));
    t.is(received.status, expected.status);
    t.deepEqual(received.names, expected.names);
    t.deepEqual(received.body, expected.body);
    const [job] = await listJobs(account);
    t.is(job!.status, 'failed');
    t.is(await readSpent(account), 0n);
  });
}

test('an error about a field names the field to a caller that waits, too', async (t) => {
  const account = await stack.createAccount();
  const body = {
    ...chatOf('fetching-chat'),
    messages: [
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://localhost/a.png' } }] },
    ],
  };
  const read = async (headers: Record<string, string>) => {
    const response = await stack.post(chats, account.apiKey, body, headers);
    return { status: response.status, body: (await response.json()) as object };
  };
  const expected = await read({});
  t.deepEqual(await read(waiting(60)), expected);
  t.like(expected, { status: 422, body: { detail: [{ loc: ['body', 'messages'] }] } });
});

test('a caller that leaves while it waits leaves a job, which ends and is paid', async (t) => {
  const account = await stack.createAccount();
  const caller = new AbortController();
  const call = fetch(`${stack.url}${chats}`, {
    method: 'POST',
    signal: caller.signal,
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${account.apiKey}`,
      ...waiting(60),
    },
    body: JSON.stringify(chatOf('slow-chat')),
  });
  const id = await waitFor('the job', async () => (await listJobs(account))[0]?.id);
  caller.abort();
  await t.throwsAsync(call, { any: true });
  const ended = await waitForJob(stack, account, id);
  t.like(ended, { status: 'succeeded', cancel_requested: false });
  t.is(toNano(ended.cost_request!), await readSpent(account));
});

test('a caller that waits for a job which is cancelled gets the job', async (t) => {
  const account = await stack.createAccount();
  const response = stack.post(chats, account.apiKey, chatOf('hung-chat'), waiting(60));
  const id = await waitFor('the job', async () => {
    const [job] = await listJobs(account);
    return job?.status === 'active' && job.id;
  });
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  const { status, headers, json } = await response.then(async (received) => ({
    status: received.status,
    headers: received.headers,
    json: (await received.json()) as JobBody,
  }));
  t.is(status, 202);
  t.is(headers.get('preference-applied'), 'respond-async');
  t.like(json, { id, status: 'cancelled', error: { code: 'job_cancelled' } });
});

test('requests with one Idempotency-Key wait for one job, and a later one gets its response', async (t) => {
  const account = await stack.createAccount();
  const headers = { ...waiting(60), 'idempotency-key': randomUUID() };
  const word = `w${randomUUID().replaceAll('-', '')}`;
  const send = () => stack.post(chats, account.apiKey, chatOf('slow-chat', word), headers);
  const first = send();
  await waitFor('the job', async () => (await listJobs(account)).length === 1);
  const responses: Response[] = await Promise.all([first, send()]);
  responses.push(await send());
  const bodies: unknown[] = [];
  for (const response of responses) {
    t.is(response.status, 200);
    t.is(response.headers.get('preference-applied'), 'wait=60');
    bodies.push(await response.json());
  }
  const ids = responses.map((response) => response.headers.get('x-request-id'));
  t.is(new Set(ids).size, 1);
  t.deepEqual(bodies[1], bodies[0]);
  t.deepEqual(bodies[2], bodies[0]);
  t.is(responses.at(-1)!.headers.get('idempotent-replayed'), 'true');
  t.is(vendor.requests.entries.filter(({ body }) => JSON.stringify(body).includes(word)).length, 1);
});

test('a process that stops answers its waiting callers with their jobs', async (t) => {
  const account = await stack.createAccount();
  const api = await startApiOf(stack);
  const response = postJson(`${api.url}${chats}`, account.apiKey, chatOf('hung-chat'), waiting(60));
  const id = await waitFor('the job', async () => {
    const [job] = await listJobs(account);
    return job?.status === 'active' && job.id;
  });
  const poll = fetch(`${api.url}/v1/jobs/${id}?wait=60`, {
    headers: { authorization: `Bearer ${account.apiKey}` },
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  const [accepted, polled] = await Promise.all([response, poll, api.stop()]);
  t.is(accepted.status, 202);
  t.is(((await accepted.json()) as JobBody).id, id);
  t.like(await polled.json(), { id, status: 'active' });
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
});

test('a caller beyond the concurrent waits of its account gets its job at once, and none is refused', async (t) => {
  const account = await stack.createAccount({ rpm: 1_000 });
  const { id: polledId } = await createJob(stack, account, chats, chatOf('hung-chat'));
  const callers = new AbortController();
  const signal = callers.signal;
  const polls = Array.from({ length: maxCallsPerAccount }, () =>
    callJobsApi(stack, account, `/${polledId}?wait=60`, { signal }).catch(() => null),
  );
  await waitFor('the limit', async () => {
    const response = await callJobsApi(stack, account, `/${polledId}?wait=1`);
    await response.text();
    return response.status === 429;
  });
  const startedMs = performance.now();
  const response = await stack.post(chats, account.apiKey, chatOf('hung-chat'), waiting(60));
  t.is(response.status, 202);
  t.true(performance.now() - startedMs < 5_000);
  const { id } = (await response.json()) as JobBody;
  // Other calls of the account are not limited by those that wait.
  t.is((await callJobsApi(stack, account, `/${id}`)).status, 200);
  callers.abort();
  await Promise.all(polls);
  for (const each of [id, polledId]) await callJobsApi(stack, account, `/${each}`, { method: 'DELETE' });
});

async function timeOf<T>(call: () => Promise<T>): Promise<{ readonly result: T; readonly ms: number }> {
  const startedMs = performance.now();
  const result = await call();
  return { result, ms: performance.now() - startedMs };
}

test('GET with wait returns when the job has ended, or after that time with its current state', async (t) => {
  const account = await stack.createAccount();
  const get = async (id: string, query: string) =>
    (await (await callJobsApi(stack, account, `/${id}${query}`)).json()) as JobBody;
  const { id: hungId } = await createJob(stack, account, chats, chatOf('hung-chat'));
  const short = await timeOf(() => get(hungId, '?wait=1'));
  t.is(short.result.status, 'active');
  t.true(short.ms >= 1_000, `${short.ms} ms`);
  t.like(await get(hungId, '?wait=0'), { status: 'active' });
  await callJobsApi(stack, account, `/${hungId}`, { method: 'DELETE' });
  const { id } = await createJob(stack, account, chats, chatOf('slow-chat'));
  const long = await timeOf(() => get(id, '?wait=60'));
  t.is(long.result.status, 'succeeded');
  t.truthy(long.result.response);
  t.true(long.ms < 30_000, `${long.ms} ms`);
  t.is((await get(id, '?wait=60')).status, 'succeeded');
});

test('a wait of GET that is no integer from 0 to 600 is a 422 that names it', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, chatOf('chat'));
  for (const wait of ['-1', '601', '1.5', 'x', '']) {
    const response = await callJobsApi(stack, account, `/${id}?wait=${wait}`);
    t.is(response.status, 422, wait);
    t.like(await response.json(), { detail: [{ loc: ['query', 'wait'] }] });
  }
  t.is((await callJobsApi(stack, account, `/${randomUUID()}?wait=5`)).status, 404);
});

test('the official SDK sees an ordinary response if every request prefers to wait', async (t) => {
  const { apiKey } = await stack.createAccount();
  const client = new OpenAI({
    apiKey,
    baseURL: `${stack.url}/v1`,
    defaultHeaders: { Prefer: 'respond-async, wait=60' },
    maxRetries: 0,
  });
  const completion = await client.chat.completions.create({
    model: 'slow-chat',
    messages: [{ role: 'user', content: 'Say hello.' }],
  });
  t.is(completion.object, 'chat.completion');
  t.is(typeof completion.choices[0]!.message.content, 'string');
  const { data } = await client.embeddings.create({ model: 'vectors', input: ['one', 'two'] });
  t.is(data.length, 2);
  t.is(data[0]!.embedding.length, 1536);
  const image = await client.images.generate({ model: 'picture', prompt: 'a boat' });
  t.is(typeof image.data![0]!.b64_json, 'string');
  await expectBadRequest(t, client);
});

async function expectBadRequest(t: ExecutionContext, client: OpenAI): Promise<void> {
  const call = client.chat.completions.create({
    model: 'broken-chat',
    messages: [{ role: 'user', content: 'Say hello.' }],
  });
  const error = await t.throwsAsync(async () => await call, { instanceOf: OpenAI.BadRequestError });
  t.is(error?.code, 'upstream_rejected');
}

test('headers for jobs need the preference, and are validated', async (t) => {
  const { apiKey } = await stack.createAccount();
  const hook = { 'x-webhook-url': 'https://hooks.example/' };
  const cases: [Record<string, string>, string, RegExp][] = [
    [{ 'cancel-after': '90s' }, 'Cancel-After', /Prefer: respond-async/],
    [{ prefer: 'wait=10', 'cancel-after': '90s' }, 'Cancel-After', /Prefer: respond-async/],
    [{ ...respondAsync, 'cancel-after': 'soon' }, 'Cancel-After', /90s, 15m or 1h/],
    [{ ...waiting(5), 'cancel-after': '0s' }, 'Cancel-After', /90s, 15m or 1h/],
    [{ 'x-webhook-events': 'ended' }, 'X-Webhook-Events', /Prefer: respond-async/],
    [{ ...respondAsync, 'x-webhook-events': 'ended' }, 'X-Webhook-Events', /X-Webhook-Url/],
    [{ ...respondAsync, ...hook, 'x-webhook-events': 'begun' }, 'X-Webhook-Events', /started, ended/],
  ];
  for (const [headers, name, words] of cases) {
    const response = await stack.post(chats, apiKey, chatOf('chat'), headers);
    t.is(response.status, 422, JSON.stringify(headers));
    const { detail, error } = (await response.json()) as {
      detail: { loc: string[] }[];
      error: { code: string; message: string };
    };
    t.deepEqual(detail[0]?.loc, ['header', name]);
    t.is(error.code, 'validation_failed');
    t.regex(error.message, words);
  }
});

test('while a caller waits, its body takes no memory of the process', async (t) => {
  const account = await stack.createAccount();
  const api = await startApiOf(stack, stack.config, { requestMemoryBytes: 6_000_000 });
  t.teardown(() => api.stop());
  // An account may hold one such body, and not two.
  const body = { ...chatOf('hung-chat'), ignored: 'x'.repeat(2_500_000) };
  const calls: Promise<Response>[] = [];
  for (let count = 1; count <= 3; count++) {
    calls.push(postJson(`${api.url}${chats}`, account.apiKey, body, waiting(20)));
    await waitFor('the job', async () => (await listJobs(account)).length === count);
  }
  for (const { id } of await listJobs(account))
    await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  for (const response of await Promise.all(calls)) t.is(response.status, 202);
});
