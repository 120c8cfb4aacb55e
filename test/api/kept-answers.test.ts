import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { startEmbeddedS3 } from '../../scripts/embedded/s3/server.ts';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { maxStoredBytesPerAccount, maxStoredBytesInFlight } from '../../shared/billing/stored-bytes.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { createJob, waitForJob } from '../support/jobs.ts';
import { pretendStored, readStoredBytes } from '../support/kept-answers.ts';
import { readLoss, toNano, waitForNoReservation } from '../support/observe.ts';
import { answerWithUsage, startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { useRaw, type RawCaller } from '../support/raw-caller.ts';
import { parseSse } from '../support/sse-events.ts';
import { startStack, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What kept answers take: of Redis, of an api process's memory, of connections that nobody reads. */

const chats = '/v1/chat/completions';
const usage = { prompt_tokens: 10, completion_tokens: 100, total_tokens: 110 };
const maxStallMs = 500;
const eventBytes = 60_000;

/** Says so many times 60 kB as its caller asks for, as a stream or at once. */
function say(body: Readonly<Record<string, unknown>>): object | readonly string[] {
  const [{ content }] = body['messages'] as [{ content: string }];
  const count = Number(content);
  const text = 'x'.repeat(eventBytes);
  if (body['stream'] !== true) {
    const answer = answerWithUsage(usage) as { choices: [{ message: { content: string } }] };
    answer.choices[0].message.content = text.repeat(count);
    return answer;
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
  vendor = await startScriptedVendor(say);
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

/** A chat whose answer has so many times 60 kB. */
const ask = (count: number, stream = false): object => ({
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
  const response = await to.post(chats, apiKey, body, key);
  const requestId = response.headers.get('x-request-id')!;
  return { status: response.status, headers: response.headers, requestId, text: await response.text() };
}

const lengthInRedis = ({ id }: TestAccount, requestId: string, of = stack): Promise<number> =>
  of.redis.strlen(redisKeys.storedFrames(id, requestId));

async function waitUntilMoved(account: TestAccount, requestId: string, of = stack): Promise<void> {
  await waitFor('the stream to move', async () => (await lengthInRedis(account, requestId, of)) < 100);
}

/** A caller that reads nothing, and the api's end of its connection. */
async function askWithoutReading(
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

test('a stream that has ended moves to the object store, and is given again from there byte for byte', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const first = await send(account, ask(40, true), key);
  t.true(parseSse(first.text).isDone);
  await waitUntilMoved(account, first.requestId);
  const replays = await Promise.all(Array.from({ length: 3 }, () => send(account, ask(40, true), key)));
  for (const { headers, text } of replays) {
    t.is(headers.get('idempotent-replayed'), 'true');
    t.true(text === first.text);
  }
  const kept = await readStoredBytes(stack.redis, account.id);
  t.true(kept['sum']! < 100);
});

test('a short stream stays in Redis, unless its account has much there', async (t) => {
  const account = await stack.createAccount();
  const [key, later] = [createKey(), createKey()];
  const first = await send(account, ask(1, true), key);
  const kept = await lengthInRedis(account, first.requestId);
  t.true(kept > eventBytes);
  t.is((await readStoredBytes(stack.redis, account.id))['sum'], kept);
  await pretendStored(stack.redis, account.id, maxStoredBytesPerAccount - 1_000_000);
  const second = await send(account, ask(1, true), later);
  await waitUntilMoved(account, second.requestId);
  t.is((await send(account, ask(1, true), later)).text, second.text);
  t.is(await lengthInRedis(account, first.requestId), kept);
});

test('while the object store is away streams and whole answers stay in Redis, counted, and are given from there', async (t) => {
  const s3 = await startEmbeddedS3({ dir: `${stack.dir}/gone`, accessKeyId: 'k', secretAccessKey: 's' });
  await s3.close();
  const own = await useStack(t, { catalog: catalogOf(vendor.url), env: { S3_ENDPOINT: s3.endpoint } });
  const account = await own.createAccount();
  for (const stream of [true, false]) {
    const key = createKey();
    const first = await send(account, ask(20, stream), key, own);
    const again = await send(account, ask(20, stream), key, own);
    t.is(first.status, 200);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    t.true(again.text === first.text);
  }
  t.true((await readStoredBytes(own.redis, account.id))['sum']! > 40 * eventBytes);
});

test('an account that has too much in Redis is told to wait or to leave the header out, and gets what is kept for it', async (t) => {
  const [account, other] = [await stack.createAccount(), await stack.createAccount()];
  const key = createKey();
  const kept = await send(account, ask(1), key);
  await pretendStored(stack.redis, account.id, maxStoredBytesPerAccount + 1);
  const refused = await send(account, ask(1), createKey());
  t.is(refused.status, 429);
  t.truthy(refused.headers.get('retry-after'));
  t.is(refused.headers.get('x-ratelimit-limit-requests'), '100000');
  const { error } = JSON.parse(refused.text) as { error: { code: string; message: string } };
  t.is(error.code, 'too_many_jobs');
  t.regex(error.message, /Idempotency-Key.*Send .* without the header, or later.* within a day/);
  t.is((await send(account, ask(1), {})).status, 200, 'without the header');
  t.is((await send(account, ask(1), key)).text, kept.text, 'a replay');
  t.is((await send(other, ask(1), createKey())).status, 200);
  await pretendStored(stack.redis, account.id, maxStoredBytesPerAccount + 1, -20);
  await stack.redis.hdel(
    redisKeys.storedBytes(account.id),
    ...Object.keys(await readStoredBytes(stack.redis, account.id)).filter(
      (field) => field !== 'sum' && Number(field) > Date.now() / 1_000,
    ),
  );
  t.is((await send(account, ask(1), createKey())).status, 200, 'when it has expired');
  await waitForNoReservation(stack, account.id);
});

test('answers of jobs that have ended, however many, keep no request with an Idempotency-Key out', async (t) => {
  const account = await stack.createAccount();
  const { redis } = stack;
  const job = await createJob(stack, account, chats, ask(0), createKey());
  await waitForJob(stack, account, job.id);
  t.deepEqual(await readStoredBytes(redis, account.id), {});
  t.true((await readStoredBytes(redis, account.id, 'jobStoredBytes'))['sum']! > 0);
  await pretendStored(redis, account.id, maxStoredBytesInFlight, 600, 'jobStoredBytes');
  t.is((await send(account, ask(1), createKey())).status, 200);
  // Past the bound what a further job leaves in Redis says no more than where its response is.
  const more = await createJob(stack, account, chats, ask(0));
  const { response } = await waitForJob(stack, account, more.id);
  t.is(response!['id'], more.id);
  t.true((await lengthInRedis(account, more.id)) < 100);
});

test('a stream whose account comes to have too much in Redis ends, and what came of it is charged', async (t) => {
  const simulator = await startVendorSimulator();
  t.teardown(() => simulator.close());
  const own = await useStack(t, {
    catalog: catalogOf(simulator.url).replace('model: m', 'model: gpt+drip-20'),
  });
  const account = await own.createAccount();
  const messages = [{ role: 'user', content: 'cat '.repeat(5_000) }];
  const response = await own.post(chats, account.apiKey, { ...ask(1, true), messages }, createKey());
  const reader = response.body!.getReader();
  const chunks = [Buffer.from((await reader.read()).value ?? [])];
  await pretendStored(own.redis, account.id, maxStoredBytesInFlight);
  for (let next = await reader.read(); !next.done; next = await reader.read())
    chunks.push(Buffer.from(next.value));
  const { events } = parseSse(Buffer.concat(chunks).toString());
  t.is(events.at(-1)?.error?.code, 'too_many_jobs');
  await waitForNoReservation(own, account.id);
  const loss = await readLoss(own, account.id, '100');
  t.true(loss > 0n);
  t.true(loss < toNano(0.1), 'far from all that was to come');
  t.true(simulator.requests.entries[0]!.isAborted);
});

for (const { what, stream } of [
  { what: 'stream', stream: true },
  { what: 'whole answer', stream: false },
]) {
  test(`a replay of a ${what} that nobody reads is cut after the longest stall`, async (t) => {
    const account = await stack.createAccount();
    const key = createKey();
    // Above what the system's buffers between two sockets take.
    const body = ask(250, stream);
    const { text } = await send(account, body, key);
    const { caller, accepted } = await askWithoutReading(t, account, body, key);
    await once(accepted, 'close');
    caller.socket.resume();
    const received = (await caller.closed).length;
    t.true(received > 0 && received < text.length, `${received} of ${text.length}`);
    t.is((await send(account, body, key)).text.length, text.length, 'and is there for who asks again');
  });
}

test('a live stream that nobody reads is cut as well, and what was generated is charged', async (t) => {
  const account = await stack.createAccount();
  const { accepted } = await askWithoutReading(t, account, ask(250, true), {});
  await once(accepted, 'close');
  await waitForNoReservation(stack, account.id);
  t.true((await readLoss(stack, account.id, '100')) > 0n);
});

test('of whole answers that nobody reads one account is sent no more than its share of the memory, and others are sent theirs', async (t) => {
  // Room for two and a half of 15 MB, each of which is more than the system's buffers between two sockets take.
  const own = await useStack(t, { catalog: catalogOf(vendor.url), api: { responseMemoryBytes: 40_000_000 } });
  const [slow, other] = [await own.createAccount(), await own.createAccount()];
  const [slowKey, otherKey] = [createKey(), createKey()];
  const body = ask(250);
  const { text } = await send(slow, body, slowKey, own);
  const { text: text2 } = await send(other, body, otherKey, own);
  const first = await own.post(chats, slow.apiKey, body, slowKey);
  let answered = 0;
  const further = Array.from({ length: 4 }, async () => {
    const response = await own.post(chats, slow.apiKey, body, slowKey);
    answered += 1;
    return await response.text();
  });
  t.true((await send(other, body, otherKey, own)).text === text2);
  t.is(answered, 0);
  t.true((await first.text()) === text);
  for (const answer of await Promise.all(further)) t.true(answer === text);
});
