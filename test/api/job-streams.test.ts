import { randomUUID } from 'node:crypto';
import test from 'ava';
import OpenAI from 'openai';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { answerPrefix } from '../../shared/platform/storage/lifecycle-rules.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { callJobsApi, createJob, readJob, respondAsync, waitForJob, type JobBody } from '../support/jobs.ts';
import { parseNamedEvents } from '../support/named-events.ts';
import { startApiOf } from '../support/other-api.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What can be done with a job: its URLs, the stream of its response, and deleting its response. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
  narrow: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-narrow-key-0123456789], maxConcurrency: 1 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: wordy-chat, type: chat, context: 2000000, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: gpt-wide }] }
  - { id: slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-4000 }] }
  - { id: hung-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-60000 }] }
  - { id: busy-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: narrow, model: gpt-busy }] }
  - { id: broken-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+fail-400 }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: picture, type: image, context: 8192, size: [256x256, 1024x1024], max_image_count: 4, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: img }] }
`;

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(
  test,
  catalogOf,
  (started) => {
    ({ stack, vendor } = started);
  },
  { api: { firstCommentMs: 400 } },
);

const chats = '/v1/chat/completions';
const embeddings = '/v1/embeddings';
const images = '/v1/images/generations';

const chatOf = (model: string, content = 'Say hello.') => ({
  model,
  messages: [{ role: 'user', content }],
  max_tokens: 20,
});

const bearer = ({ apiKey }: TestAccount) => ({ authorization: `Bearer ${apiKey}` });

const stream = (account: TestAccount, id: string, lastEventId?: string): Promise<Response> =>
  callJobsApi(stack, account, `/${id}/stream`, {
    ...(lastEventId !== undefined && { headers: { 'last-event-id': lastEventId } }),
  });

const listIds = (text: string): string[] => [...text.matchAll(/^id: (\S+)$/gm)].map(([, id]) => id!);

test('every job has absolute URLs, in the response that creates it, alone, in lists and in events', async (t) => {
  const account = await stack.createAccount();
  const job = await createJob(stack, account, chats, chatOf('chat'));
  const base = `${stack.url}/v1/jobs/${job.id}`;
  const urls = { get: base, cancel: `${base}/cancel`, events: `${base}/events`, stream: `${base}/stream` };
  t.deepEqual(job.urls, urls);
  const headers = bearer(account);
  await waitForJob(stack, account, job.id);
  t.like(await (await fetch(urls.get, { headers })).json(), { id: job.id, urls });
  const { items } = (await (await callJobsApi(stack, account, '')).json()) as { items: JobBody[] };
  t.deepEqual(items[0]!.urls, urls);
  const events = parseNamedEvents<JobBody>(await (await fetch(urls.events, { headers })).text());
  t.true(events.every(({ data }) => data.urls.events === urls.events));
  t.is((await fetch(urls.stream, { headers })).status, 200);
  t.like(await (await fetch(urls.cancel, { method: 'POST', headers })).json(), { id: job.id });
  const other = await createJob(stack, account, embeddings, { model: 'vectors', input: 'one' });
  t.is(other.urls.stream, null);
});

test('the URLs of a job begin with PUBLIC_URL', async (t) => {
  const account = await stack.createAccount();
  const publicUrl = 'https://gateway.example/api';
  const api = await startApiOf(stack, { ...stack.config, publicUrl });
  t.teardown(() => api.stop());
  const { id } = await createJob(stack, account, chats, chatOf('chat'));
  const job = await (await fetch(`${api.url}/v1/jobs/${id}`, { headers: bearer(account) })).json();
  t.like(job, { urls: { get: `${publicUrl}/v1/jobs/${id}` } });
});

test('POST to the cancel URL cancels a job, and does nothing to one that has ended', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const cancel = () =>
    callJobsApi(stack, account, `/${id}/cancel`, { method: 'POST', body: '{"ignored": true}' });
  t.is((await cancel()).status, 200);
  const ended = await waitForJob(stack, account, id);
  t.like(ended, { status: 'cancelled', cancel_requested: true });
  const again = await cancel();
  t.is(again.status, 200);
  t.deepEqual(await again.json(), ended);
  const stranger = await stack.createAccount();
  t.is((await callJobsApi(stack, stranger, `/${id}/cancel`, { method: 'POST' })).status, 404);
});

test('the stream of a chat has comments while the job waits and runs, and then its whole response as chunks', async (t) => {
  const held = vendor.hold('gpt-busy');
  t.teardown(() => held.end());
  const [blocker, account] = [await stack.createAccount(), await stack.createAccount()];
  const blocking = await createJob(stack, blocker, chats, chatOf('busy-chat'));
  await waitForJob(stack, blocker, blocking.id, ({ status }) => status === 'active');
  const { id } = await createJob(stack, account, chats, chatOf('busy-chat'));
  // A stream answers with its first comment.
  const response = await stream(account, id);
  t.is(response.status, 200);
  t.regex(response.headers.get('content-type')!, /^text\/event-stream/);
  held.release(1);
  await waitForJob(stack, account, id, ({ status }) => status === 'active');
  const later = await stream(account, id);
  held.release(1);
  const text = await response.text();
  t.regex(text, /^: queued position=1$/m);
  const laterText = await later.text();
  t.regex(laterText, /^: keep-alive$/m);
  t.notRegex(laterText, /queued/);
  const { response: expected } = await readJob(stack, account, id);
  const chunks = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data!) as Chunk);
  const [choice] = (expected as { choices: readonly Choice[] }).choices;
  t.like(chunks[0], { object: 'chat.completion.chunk', id, choices: [{ delta: { role: 'assistant' } }] });
  t.is(chunks.map(({ choices: [one] }) => one?.delta.content ?? '').join(''), choice!.message.content);
  t.is(chunks.at(-2)!.choices[0]!.finish_reason, choice!.finish_reason);
  t.deepEqual(chunks.at(-1)!.choices, []);
  t.deepEqual(chunks.at(-1)!.usage, expected!['usage']);
  t.true(text.endsWith('data: [DONE]\n\n'));
});

interface Choice {
  readonly message: { readonly content: string };
  readonly finish_reason: string;
}

interface Chunk {
  readonly choices: readonly {
    readonly delta: { readonly content?: string };
    readonly finish_reason: string | null;
  }[];
  readonly usage: unknown;
}

test('the official SDK assembles the stream of a job to its response, with tool calls and several choices', async (t) => {
  const account = await stack.createAccount();
  const requests: Record<string, unknown>[] = [
    { ...chatOf('chat', 'one two three'), n: 2 },
    {
      ...chatOf('chat', 'What is the weather in Paris?'),
      tools: [
        {
          type: 'function',
          function: {
            name: 'weather',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      ],
      tool_choice: 'required',
    },
  ];
  for (const request of requests) {
    const { id } = await createJob(stack, account, chats, request);
    const { response } = await waitForJob(stack, account, id);
    const client = new OpenAI({
      apiKey: account.apiKey,
      baseURL: `${stack.url}/v1`,
      fetch: async (_url, init) =>
        await fetch(`${stack.url}/v1/jobs/${id}/stream`, { headers: (init as RequestInit).headers! }),
    });
    const assembled = await client.chat.completions
      .stream({ model: 'chat', messages: [], stream_options: { include_usage: true } })
      .finalChatCompletion();
    const expected = response as unknown as OpenAI.ChatCompletion;
    t.is(assembled.choices.length, expected.choices.length);
    for (const [i, { message, finish_reason: reason }] of expected.choices.entries()) {
      t.is(assembled.choices[i]!.finish_reason, reason);
      t.is(assembled.choices[i]!.message.content, message.content);
      t.deepEqual(
        assembled.choices[i]!.message.tool_calls?.map((call) =>
          call.type === 'function' ? call.function.arguments : '',
        ),
        message.tool_calls?.map((call) => (call.type === 'function' ? call.function.arguments : '')),
      );
    }
    t.is(assembled.usage?.total_tokens, expected.usage?.total_tokens);
  }
});

test('a stream of a job can be resumed after each of its events, and is a 204 after the last one', async (t) => {
  const account = await stack.createAccount();
  const { id } = await createJob(stack, account, chats, chatOf('chat'));
  await waitForJob(stack, account, id);
  const whole = await (await stream(account, id)).text();
  const ids = listIds(whole);
  t.is(ids.length, 4);
  for (const last of ids.slice(0, -1)) {
    const rest = await (await stream(account, id, last)).text();
    t.is(rest, whole.slice(whole.indexOf('\n\n', whole.indexOf(`id: ${last}\n`)) + 2));
  }
  t.is((await stream(account, id, ids.at(-1))).status, 204);
  t.is(await (await stream(account, id, '1.aaaaaaaa')).text(), whole, 'an id of another stream is ignored');
});

test('the stream of a job that failed or was cancelled has its error, with its status if nothing was sent', async (t) => {
  const account = await stack.createAccount();
  const broken = await createJob(stack, account, chats, chatOf('broken-chat'));
  await waitForJob(stack, account, broken.id);
  const failed = await stream(account, broken.id);
  t.is(failed.status, 400);
  t.like(await failed.json(), { error: { code: 'upstream_rejected' } });
  const hung = await createJob(stack, account, chats, chatOf('hung-chat'));
  await waitForJob(stack, account, hung.id, ({ status }) => status === 'active');
  const open = await stream(account, hung.id);
  await callJobsApi(stack, account, `/${hung.id}`, { method: 'DELETE' });
  const text = await open.text();
  t.regex(text, /^: keep-alive$/m);
  const [, data = '{}'] = /^data: (\{.*)\n\n$/m.exec(text) ?? [];
  t.like(JSON.parse(data), { error: { code: 'job_cancelled' } });
  t.false(text.includes('[DONE]'));
  const late = await stream(account, hung.id);
  t.is(late.status, 409);
  t.like(await late.json(), { error: { code: 'job_cancelled' } });
});

test('a response that is too large for a stream is a 422 that says where to get it', async (t) => {
  // Few, but long words: the simulator makes all events of a stream in one turn of the event loop.
  const wordy = await startVendorSimulator({ replyWords: 40 });
  t.teardown(() => wordy.close());
  const own = await useStack(t, { catalog: catalogOf(wordy.url) });
  const account = await own.createAccount();
  const body = { ...chatOf('wordy-chat'), max_tokens: 1_000_000 };
  const { id } = await createJob(own, account, chats, body);
  t.is((await waitForJob(own, account, id)).status, 'succeeded');
  const response = await callJobsApi(own, account, `/${id}/stream`);
  t.is(response.status, 422);
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  t.is(error.code, 'validation_failed');
  t.true(error.message.includes(`GET /v1/jobs/${id}`), error.message);
  const whole = await (await callJobsApi(own, account, `/${id}`)).text();
  t.true(whole.length > 2 * 1024 * 1024);
});

test('jobs that are no chats, jobs of other accounts and unknown jobs have no stream', async (t) => {
  const [account, stranger] = [await stack.createAccount(), await stack.createAccount()];
  const { id } = await createJob(stack, account, embeddings, { model: 'vectors', input: 'one' });
  const chat = await createJob(stack, account, chats, chatOf('chat'));
  t.is((await stream(account, id)).status, 404);
  t.is((await stream(stranger, chat.id)).status, 404);
  t.is((await stream(account, randomUUID())).status, 404);
});

const deleteResponse = (account: TestAccount, id: string): Promise<Response> =>
  callJobsApi(stack, account, `/${id}/response`, { method: 'DELETE' });

/** The keys in Redis that hold responses, without the counters of their sizes. */
const findStored = async (id: string): Promise<string[]> =>
  (await findKeys(stack.redis, `*:${id}`)).filter((key) => key.includes(':kept'));

for (const [path, body] of [
  [chats, chatOf('chat')],
  [embeddings, { model: 'vectors', input: Array.from({ length: 80 }, (_, i) => `text ${i}`) }],
  [images, { model: 'picture', prompt: 'a lighthouse', n: 2, size: '256x256', response_format: 'url' }],
  [images, { model: 'picture', prompt: 'a lighthouse', size: '256x256' }],
] as const) {
  const name = JSON.stringify(body).slice(0, 80);
  test(`${name}: a deleted response is gone from all stores and its links, and the job is kept`, async (t) => {
    const account = await stack.createAccount();
    const key = { 'idempotency-key': randomUUID() };
    const { id } = await createJob(stack, account, path, body, key);
    const { response, response_error: none, ...job } = await waitForJob(stack, account, id);
    t.is(none, null);
    const objects = await listObjects(id);
    const links =
      (response as { data?: readonly { url?: string | null }[] }).data?.flatMap(({ url }) => url ?? []) ?? [];
    t.is(links.length, 'n' in body ? 2 : 0);
    for (const link of links) t.is((await fetch(link)).status, 200);
    t.true((await findStored(id)).length + objects.length > 0);

    for (let i = 0; i < 2; i++) {
      const deleted = await deleteResponse(account, id);
      t.is(deleted.status, 204);
      t.is(await deleted.text(), '');
    }
    for (const link of links) t.is((await fetch(link)).status, 404);
    t.deepEqual(await findStored(id), []);
    t.deepEqual(await listObjects(id), []);
    const { sum = '0' } = await stack.redis.hgetall(redisKeys.jobStoredBytes(account.id));
    t.is(sum, '0');

    const { response: gone, response_error: failure, ...kept } = await readJob(stack, account, id);
    t.deepEqual(kept, job);
    t.is(gone, null);
    t.like(failure, { code: 'not_found' });
    t.regex(failure!.message, /deleted at the request of the account/);
    const events = parseNamedEvents<JobBody>(
      await (await fetch(job.urls.events, { headers: bearer(account) })).text(),
    );
    t.like(events.at(-1), {
      name: 'succeeded',
      data: { response: null, response_error: { code: 'not_found' } },
    });
    for (const headers of [{}, { prefer: 'respond-async, wait=30' }]) {
      const replay = await stack.post(path, account.apiKey, body, { ...key, ...headers });
      t.is(replay.status, 404, JSON.stringify(headers));
      t.regex(((await replay.json()) as { error: { message: string } }).error.message, /deleted/);
    }
    const again = await stack.post(path, account.apiKey, body, { ...key, ...respondAsync });
    t.is(again.status, 202);
    t.like(await again.json(), { id, response: null, response_error: { code: 'not_found' } });
    if (path === chats) {
      const streamed = await stream(account, id);
      t.is(streamed.status, 404);
      t.regex(((await streamed.json()) as { error: { message: string } }).error.message, /deleted/);
    }
  });
}

async function listObjects(id: string): Promise<string[]> {
  const objects = new ObjectStore(stack.config.s3);
  try {
    return await objects.list(`${answerPrefix}${id}/`, 10, '', AbortSignal.timeout(10_000));
  } finally {
    objects.close();
  }
}

test('the response of a job that has not ended cannot be deleted, nor one of another account', async (t) => {
  const [account, stranger] = [await stack.createAccount(), await stack.createAccount()];
  const { id } = await createJob(stack, account, chats, chatOf('hung-chat'));
  const refused = await deleteResponse(account, id);
  t.is(refused.status, 422);
  t.like(await refused.json(), {
    error: { code: 'validation_failed' },
    detail: [{ loc: ['path', 'job_id'] }],
  });
  for (const unknown of [randomUUID(), 'nonsense'])
    t.is((await deleteResponse(account, unknown)).status, 404);
  t.is((await deleteResponse(stranger, id)).status, 404);
  await callJobsApi(stack, account, `/${id}`, { method: 'DELETE' });
  const ended = await waitForJob(stack, account, id);
  t.is((await deleteResponse(account, id)).status, 204);
  t.deepEqual(
    await readJob(stack, account, id),
    ended,
    'a cancelled job has no response, so nothing changes',
  );
});

test('if the object store is down, deleting a response is a 503, the response is no longer shown, and it can be repeated', async (t) => {
  const account = await stack.createAccount();
  const s3 = { ...stack.config.s3, endpoint: 'http://127.0.0.1:9' };
  const api = await startApiOf(stack, { ...stack.config, s3 });
  t.teardown(() => api.stop());
  const body = { model: 'picture', prompt: 'a lighthouse', size: '256x256', response_format: 'url' };
  const { id } = await createJob(stack, account, images, body);
  const { response } = await waitForJob(stack, account, id);
  const { url } = (response as { data: readonly { url: string }[] }).data[0]!;
  const failed = await fetch(`${api.url}/v1/jobs/${id}/response`, {
    method: 'DELETE',
    headers: bearer(account),
  });
  t.is(failed.status, 503);
  t.like(await readJob(stack, account, id), { response: null, response_error: { code: 'not_found' } });
  t.is((await deleteResponse(account, id)).status, 204);
  t.is((await fetch(url)).status, 404);
  await waitFor('the response to be gone', async () => (await findStored(id)).length === 0);
});
