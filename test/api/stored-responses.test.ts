import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { startEmbeddedS3 } from '../../scripts/embedded/s3/server.ts';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { maxStoredBytesPerAccount, maxStoredBytesInFlight } from '../../shared/money/stored-bytes.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { createJob, waitForJob } from '../support/jobs.ts';
import { setStoredBytes, readStoredBytes } from '../support/stored-responses.ts';
import { readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { chatWithUsage, startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { useRaw, type RawCaller } from '../support/raw-caller.ts';
import { parseSse, withoutComments } from '../support/sse-events.ts';
import { startStack, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** The cost of stored responses: memory in Redis and in api processes, and connections whose clients do not read. */

const chats = '/v1/chat/completions';
const usage = { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 };
const maxStallMs = 500;
const eventBytes = 60_000;

/** Responds with as many times 60 kB of text as the message says, streamed or not. */
function respond(body: Readonly<Record<string, unknown>>): object | readonly string[] {
  const [{ content }] = body['messages'] as [{ content: string }];
  const count = Number(content);
  const text = 'x'.repeat(eventBytes);
  if (body['stream'] !== true) {
    const response = chatWithUsage(usage) as { choices: [{ message: { content: string } }] };
    response.choices[0].message.content = text.repeat(count);
    return response;
  }
  const chunk = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm' };
  const event = (choices: object[], more: object = {}): string =>
    JSON.stringify({ ...chunk, choices, ...more });
  return [
    ...Array.from({ length: count }, (_, i) =>
      event([{ index: 0, delta: { content: `${i} ${text}` }, finish_reason: null }]),
    ),
    event([{ index: 0, delta: {}, finish_reason: 'stop' }]),
    event([], { usage }),
    '[DONE]',
  ];
}

const catalogOf = (url: string): string => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}/v1" } }
models: [{ id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: m }] }]
`;

let vendor: ScriptedVendor;
let stack: TestStack;

test.before(async () => {
  vendor = await startScriptedVendor(respond);
  stack = await startStack({
    catalog: catalogOf(vendor.url),
    api: { maxStallMs },
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const createKey = (): Record<string, string> => ({ 'idempotency-key': randomUUID() });

/** The body of a chat whose response has `count` times 60 kB of text. */
const chatOf = (count: number, stream = false): object => ({
  model: 'chat',
  messages: [{ role: 'user', content: String(count) }],
  ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
});

async function send(
  { apiKey }: TestAccount,
  body: object,
  key: Record<string, string>,
  to = stack,
): Promise<{ status: number; headers: Headers; requestId: string; text: string }> {
  let response = await to.post(chats, apiKey, body, key);
  // On a busy machine, Redis may not respond in time. The key makes it safe to try again, as the 503 says.
  const maxRetries = 'idempotency-key' in key ? 3 : 0;
  for (let retries = 0; response.status === 503 && retries < maxRetries; retries++)
    response = await to.post(chats, apiKey, body, key);
  const requestId = response.headers.get('x-request-id')!;
  return { status: response.status, headers: response.headers, requestId, text: await response.text() };
}

const readStoredLength = ({ id }: TestAccount, requestId: string, of = stack): Promise<number> =>
  of.redis.strlen(redisKeys.storedFrames(id, requestId));

async function waitUntilMoved(account: TestAccount, requestId: string, of = stack): Promise<void> {
  await waitFor(
    'the stream to move to the object store',
    async () => (await readStoredLength(account, requestId, of)) < 100,
  );
}

/**
 * Sends a request without reading the response. Returns the caller, and the api process's end of its connection.
 */
async function sendWithoutReading(
  t: ExecutionContext,
  { apiKey }: TestAccount,
  body: object,
  key: Record<string, string>,
): Promise<{ readonly caller: RawCaller; readonly accepted: Socket }> {
  const sockets: Socket[] = [];
  const onSocket = (message: unknown): void => {
    sockets.push((message as { socket: Socket }).socket);
  };
  subscribe('net.server.socket', onSocket);
  const caller = await useRaw(t, stack.url, { isPaused: true });
  const accepted = await waitFor('the connection', () =>
    sockets.find((socket) => socket.remotePort === caller.socket.localPort),
  );
  unsubscribe('net.server.socket', onSocket);
  const text = JSON.stringify(body);
  const headers = {
    host: 'gateway',
    'content-type': 'application/json',
    'content-length': text.length,
    authorization: `Bearer ${apiKey}`,
    ...key,
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  caller.socket.write(`POST ${chats} HTTP/1.1\r\n${head.join('')}\r\n${text}`);
  return { caller, accepted };
}

test('a finished stream moves to the object store, and is replayed from there byte for byte', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const first = await send(account, chatOf(40, true), key);
  t.true(parseSse(first.text).isDone);
  await waitUntilMoved(account, first.requestId);
  const replays = await Promise.all(Array.from({ length: 3 }, () => send(account, chatOf(40, true), key)));
  for (const { headers, text } of replays) {
    t.is(headers.get('idempotent-replayed'), 'true');
    t.true(text === first.text);
  }
  const storedBytes = await readStoredBytes(stack.redis, account.id);
  t.true(storedBytes['sum']! < 100);
});

test('a short stream is stored in Redis, or in the object store if its account already stores a lot in Redis', async (t) => {
  const account = await stack.createAccount();
  const [key, later] = [createKey(), createKey()];
  const first = await send(account, chatOf(1, true), key);
  const storedBytes = await readStoredLength(account, first.requestId);
  t.true(storedBytes > eventBytes);
  t.is((await readStoredBytes(stack.redis, account.id))['sum'], storedBytes);
  await setStoredBytes(stack.redis, account.id, maxStoredBytesPerAccount - 1_000_000);
  const second = await send(account, chatOf(1, true), later);
  await waitUntilMoved(account, second.requestId);
  t.is((await send(account, chatOf(1, true), later)).text, second.text);
  t.is(await readStoredLength(account, first.requestId), storedBytes);
});

test('while the object store is down, streams and other responses stay in Redis, add to their account’s stored bytes, and are replayed from there', async (t) => {
  const s3 = await startEmbeddedS3({ dir: `${stack.dir}/gone`, accessKeyId: 'k', secretAccessKey: 's' });
  await s3.close();
  const ownStack = await useStack(t, { catalog: catalogOf(vendor.url), env: { S3_ENDPOINT: s3.endpoint } });
  const account = await ownStack.createAccount();
  for (const stream of [true, false]) {
    const key = createKey();
    const first = await send(account, chatOf(20, stream), key, ownStack);
    const again = await send(account, chatOf(20, stream), key, ownStack);
    t.is(first.status, 200);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    t.true(again.text === first.text);
  }
  t.true((await readStoredBytes(ownStack.redis, account.id))['sum']! > 40 * eventBytes);
});

test('an account that stores too much in Redis is asked to wait or omit the header, and can still replay its stored responses', async (t) => {
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const key = createKey();
  const stored = await send(account, chatOf(1), key);
  await setStoredBytes(stack.redis, account.id, maxStoredBytesPerAccount + 1);
  const rejected = await send(account, chatOf(1), createKey());
  t.is(rejected.status, 429);
  t.truthy(rejected.headers.get('retry-after'));
  t.is(rejected.headers.get('x-ratelimit-limit-requests'), '100000');
  const { error } = JSON.parse(rejected.text) as { error: { code: string; message: string } };
  t.is(error.code, 'too_many_jobs');
  t.regex(error.message, /Idempotency-Key.*Send .* without the header, or try again later.* within 24 hours/);
  t.is((await send(account, chatOf(1), {})).status, 200, 'without the header');
  t.is((await send(account, chatOf(1), key)).text, stored.text, 'a replay');
  t.is((await send(other, chatOf(1), createKey())).status, 200);
  await setStoredBytes(stack.redis, account.id, maxStoredBytesPerAccount + 1, -20);
  await stack.redis.hdel(
    redisKeys.storedBytes(account.id),
    ...Object.keys(await readStoredBytes(stack.redis, account.id)).filter(
      (field) => field !== 'sum' && Number(field) > Date.now() / 1_000,
    ),
  );
  t.is((await send(account, chatOf(1), createKey())).status, 200, 'after the stored response has expired');
  await waitForNoReservation(stack, account.id);
});

test('even very many stored responses of finished jobs do not block requests with an Idempotency-Key', async (t) => {
  const account = await stack.createAccount();
  const { redis } = stack;
  const job = await createJob(stack, account, chats, chatOf(0), createKey());
  await waitForJob(stack, account, job.id);
  t.deepEqual(await readStoredBytes(redis, account.id), {});
  t.true((await readStoredBytes(redis, account.id, 'jobStoredBytes'))['sum']! > 0);
  await setStoredBytes(redis, account.id, maxStoredBytesInFlight, 600, 'jobStoredBytes');
  t.is((await send(account, chatOf(1), createKey())).status, 200);
  // Above the limit, only the location of a further job's response is stored in Redis.
  const more = await createJob(stack, account, chats, chatOf(0));
  const { response } = await waitForJob(stack, account, more.id);
  t.is(response!['id'], more.id);
  t.true((await readStoredLength(account, more.id)) < 100);
});

test('a stream ends when its account stores too much in Redis, and the caller pays for its output so far', async (t) => {
  const simulator = await startVendorSimulator();
  t.teardown(() => simulator.close());
  const ownStack = await useStack(t, {
    catalog: catalogOf(simulator.url).replace('model: m', 'model: gpt+drip-20'),
  });
  const account = await ownStack.createAccount();
  const messages = [{ role: 'user', content: 'cat '.repeat(5_000) }];
  const response = await ownStack.post(chats, account.apiKey, { ...chatOf(1, true), messages }, createKey());
  const reader = response.body!.getReader();
  const chunks = [Buffer.from((await reader.read()).value ?? [])];
  await setStoredBytes(ownStack.redis, account.id, maxStoredBytesInFlight);
  for (let next = await reader.read(); !next.done; next = await reader.read())
    chunks.push(Buffer.from(next.value));
  const { events } = parseSse(Buffer.concat(chunks).toString());
  t.is(events.at(-1)?.error?.code, 'too_many_jobs');
  await waitForNoReservation(ownStack, account.id);
  const charged = await readAmountCharged(ownStack, account.id, '100');
  t.true(charged > 0n);
  t.true(charged < toNano(0.1), 'the cost is much less than that of the full stream');
  t.true(simulator.requests.entries[0]!.isAborted);
});

for (const { kind, stream } of [
  { kind: 'stream', stream: true },
  { kind: 'non-streamed response', stream: false },
]) {
  test(`a replay of a ${kind} is aborted if the client does not read it for the maximum stall time`, async (t) => {
    const account = await stack.createAccount();
    const key = createKey();
    // More than fits in the system's buffers between two sockets.
    const body = chatOf(250, stream);
    const { status, text } = await send(account, body, key);
    t.is(status, 200, text.slice(0, 2_000));
    const { caller, accepted } = await sendWithoutReading(t, account, body, key);
    await once(accepted, 'close');
    caller.socket.resume();
    const received = (await caller.closed).length;
    t.true(received > 0 && received < text.length, `${received} of ${text.length} bytes received`);
    t.is((await send(account, body, key)).text.length, text.length, 'the response can be replayed again');
  });
}

test('a live stream that the client does not read is aborted as well, and the caller pays for the output so far', async (t) => {
  const account = await stack.createAccount();
  const { accepted } = await sendWithoutReading(t, account, chatOf(250, true), {});
  await once(accepted, 'close');
  await waitForNoReservation(stack, account.id);
  t.true((await readAmountCharged(stack, account.id, '100')) > 0n);
});

test('unread non-streamed responses use at most their account’s share of the response memory, and other accounts get theirs', async (t) => {
  // Enough for two and a half responses of 15 MB, each larger than the system's buffers between two sockets.
  const ownStack = await useStack(t, {
    catalog: catalogOf(vendor.url),
    api: { responseMemoryBytes: 40_000_000 },
  });
  const [slow, other] = [await ownStack.createAccount(), await ownStack.createAccount()];
  const [slowKey, otherKey] = [createKey(), createKey()];
  const body = chatOf(250);
  const { text } = await send(slow, body, slowKey, ownStack);
  const { text: text2 } = await send(other, body, otherKey, ownStack);
  const first = await ownStack.post(chats, slow.apiKey, body, slowKey);
  let responseCount = 0;
  const moreTexts = Array.from({ length: 4 }, async () => {
    const response = await ownStack.post(chats, slow.apiKey, body, slowKey);
    responseCount += 1;
    return await response.text();
  });
  const repeated = await send(other, body, otherKey, ownStack);
  t.true(withoutComments(repeated.text) === withoutComments(text2));
  t.is(responseCount, 0);
  t.true(withoutComments(await first.text()) === withoutComments(text));
  for (const moreText of await Promise.all(moreTexts))
    t.true(withoutComments(moreText) === withoutComments(text));
});
