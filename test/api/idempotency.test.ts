import { randomUUID } from 'node:crypto';
import test from 'ava';
import OpenAI from 'openai';
import { startEmbeddedS3 } from '../../scripts/embedded/s3/server.ts';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisChannels, redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { ApiKeyStore } from '../../shared/accounts/api-key-store.ts';
import { AccountStore } from '../../shared/accounts/account-store.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { findReservations, readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { parseSse, withoutComments } from '../support/sse-events.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * Requests with the same key and body are one request, even if they arrive several times or at different processes.
 */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+slow-1000 }] }
  - { id: drip-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+drip-40 }] }
  - { id: long-chat, type: chat, context: 128000, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: broken-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+fail-500 }] }
  - { id: refused-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+fail-400 }] }
  - { id: cut-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+cut-4 }] }
  - { id: dear-chat, type: chat, context: 8192, pricing: { prompt: 9000000, completion: 9000000 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: picture, type: image, context: 8192, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: img }] }
  - { id: slow-picture, type: image, context: 8192, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: img+slow-1000 }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

const createKey = (): Record<string, string> => ({ 'idempotency-key': randomUUID() });

/** Returns a word unique to a test, by which its calls can be found at the vendor. */
const createWord = (): string => `w${randomUUID().replaceAll('-', '')}`;

const countCalls = (word: string): number =>
  vendor.requests.entries.filter((entry) => JSON.stringify(entry.body).includes(word)).length;

/** How many times a word was sent to the vendor. The inputs of one request may be split among any number of calls. */
const countMentions = (word: string): number =>
  countIn(
    vendor.requests.entries.map((entry) => JSON.stringify(entry.body)),
    word,
  );

const countIn = (texts: string[], word: string): number =>
  texts.reduce((sum, text) => sum + text.split(word).length - 1, 0);

interface HttpResult {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function send(
  path: string,
  { apiKey }: TestAccount,
  body: unknown,
  headers: Record<string, string>,
  url = stack.url,
): Promise<HttpResult> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}`, ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const chats = '/v1/chat/completions';
const say = (content: string): object => ({ messages: [{ role: 'user', content }] });
const streamed = { stream: true, stream_options: { include_usage: true } };

/** The cost reported in a response, streamed or not. */
function costOf({ headers, text }: HttpResult): bigint {
  const isStream = (headers.get('content-type') ?? '').startsWith('text/event-stream');
  const usage = isStream
    ? parseSse(text).events.find((event) => event.usage)?.usage
    : (JSON.parse(text) as { usage: Record<string, unknown> }).usage;
  return toNano(Number(usage?.['cost_request']));
}

for (const { kind, path, bodyOf } of [
  { kind: 'a chat', path: chats, bodyOf: (word: string) => ({ model: 'slow-chat', ...say(word) }) },
  {
    kind: 'a streamed chat',
    path: chats,
    bodyOf: (word: string) => ({ model: 'drip-chat', ...streamed, ...say(`${word} b c d e f`) }),
  },
  {
    kind: 'a chat with a large response',
    path: chats,
    bodyOf: (word: string) => ({ model: 'long-chat', ...say(`${word} ${'cat '.repeat(25_000)}`) }),
  },
  {
    kind: 'an embedding as numbers',
    path: '/v1/embeddings',
    bodyOf: (word: string) => ({ model: 'vectors', input: word }),
  },
  {
    kind: 'an embedding in base64',
    path: '/v1/embeddings',
    bodyOf: (word: string) => ({ model: 'vectors', input: [word, 'two'], encoding_format: 'base64' }),
  },
  {
    kind: 'many embeddings as numbers',
    path: '/v1/embeddings',
    bodyOf: (word: string) => ({
      model: 'vectors',
      input: Array.from({ length: 80 }, (_, i) => `${word} ${i}`),
    }),
  },
  {
    kind: 'many embeddings in base64',
    path: '/v1/embeddings',
    bodyOf: (word: string) => ({
      model: 'vectors',
      input: Array.from({ length: 80 }, (_, i) => `${word} ${i}`),
      encoding_format: 'base64',
    }),
  },
  {
    kind: 'an image in base64',
    path: '/v1/images/generations',
    bodyOf: (word: string) => ({ model: 'slow-picture', prompt: word, n: 2 }),
  },
  {
    kind: 'an image as a link',
    path: '/v1/images/generations',
    bodyOf: (word: string) => ({ model: 'slow-picture', prompt: word, response_format: 'url' }),
  },
]) {
  test(`if ${kind} is sent twice concurrently and once later, there is one vendor request, one charge, and three byte-identical responses`, async (t) => {
    const account = await stack.createAccount();
    const word = createWord();
    const key = createKey();
    const body = bodyOf(word);
    const pair = await Promise.all([send(path, account, body, key), send(path, account, body, key)]);
    const later = await send(path, account, body, key);
    const responses = [...pair, later];
    t.deepEqual(
      responses.map((response) => response.status),
      [200, 200, 200],
    );
    const first = responses.find((response) => response.headers.get('idempotent-replayed') === null);
    t.is(responses.filter((response) => response.headers.get('idempotent-replayed') === 'true').length, 2);
    for (const response of responses) {
      t.true(withoutComments(response.text) === withoutComments(first!.text), 'the same body byte for byte');
      t.is(response.headers.get('x-request-id'), first!.headers.get('x-request-id'));
      t.is(response.headers.get('content-type'), first!.headers.get('content-type'));
    }
    t.true(first!.text.includes(first!.headers.get('x-request-id')!));
    t.is(countMentions(word), countIn([JSON.stringify(body)], word));
    const cost = costOf(first!);
    t.true(cost > 0n);
    t.is(await readAmountCharged(stack, account.id, '100'), cost);
    t.deepEqual(await findReservations(stack, account.id), []);
  });
}

test('a replayed link still leads to the image', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const body = { model: 'picture', prompt: createWord(), response_format: 'url' };
  await send('/v1/images/generations', account, body, key);
  const { text } = await send('/v1/images/generations', account, body, key);
  const { data } = JSON.parse(text) as { data: { url: string }[] };
  t.is((await fetch(data[0]!.url)).status, 200);
});

test('the same key with another body or path is a conflict that clients do not retry', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const word = createWord();
  t.is((await send(chats, account, { model: 'chat', ...say(word) }, key)).status, 200);
  for (const [path, body] of [
    [chats, { model: 'chat', ...say(`${word} again`) }],
    [chats, { model: 'chat', ...say(word), stream: true }],
    [chats, { model: 'chat', ...say(word), temperature: 1.5 }],
    ['/v1/embeddings', { model: 'vectors', input: word }],
    ['/v1/images/generations', { model: 'picture', prompt: word }],
  ] as const) {
    const conflict = await send(path, account, body, key);
    t.is(conflict.status, 409);
    t.is(conflict.headers.get('x-should-retry'), 'false');
    const { error } = JSON.parse(conflict.text) as { error: { code: string; message: string } };
    t.is(error.code, 'idempotency_conflict');
  }
  t.is(countCalls(word), 1);
  t.deepEqual(await findReservations(stack, account.id), []);
});

test('a body that differs only in whitespace is the same request', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const body = { model: 'chat', ...say(createWord()) };
  const plain = await stack.post(chats, account.apiKey, JSON.stringify(body), key);
  const spaced = await stack.post(chats, account.apiKey, JSON.stringify(body, null, 2), key);
  t.is(await spaced.text(), await plain.text());
});

test('if two accounts use the same key, their requests are separate and both charged', async (t) => {
  const [one, two] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  const key = createKey();
  const word = createWord();
  const body = { model: 'chat', ...say(word) };
  const first = await send(chats, one, body, key);
  const second = await send(chats, two, body, key);
  t.is(second.status, 200);
  t.is(second.headers.get('idempotent-replayed'), null);
  t.not(second.headers.get('x-request-id'), first.headers.get('x-request-id'));
  t.is(countCalls(word), 2);
  t.is(await readAmountCharged(stack, two.id, '100'), costOf(second));
});

for (const { failure, body, status } of [
  { failure: "a vendor's 500", body: { model: 'broken-chat' }, status: 502 },
  { failure: "a vendor's rejection", body: { model: 'refused-chat' }, status: 400 },
  { failure: 'a broken stream', body: { model: 'cut-chat', ...streamed }, status: 200 },
  { failure: 'insufficient balance', body: { model: 'dear-chat' }, status: 402 },
  { failure: 'an invalid body', body: { model: 'chat', temperature: 9 }, status: 422 },
]) {
  test(`${failure} is not replayed: the same key sends a new request`, async (t) => {
    const account = await stack.createAccount();
    const key = createKey();
    const fullBody = { ...say('one two three four five six seven'), ...body };
    const first = await send(chats, account, fullBody, key);
    t.is(first.status, status);
    await waitForNoReservation(stack, account.id);
    const second = await send(chats, account, fullBody, key);
    t.is(second.status, status);
    t.is(second.headers.get('idempotent-replayed'), null);
    t.not(second.headers.get('x-request-id'), first.headers.get('x-request-id'));
    t.is((await findKeys(stack.redis, `mg:*:claim:${account.id}:*`)).length, 0);
    // A key whose requests all failed may be used for another body.
    t.is((await send(chats, account, { model: 'chat', ...say('other') }, key)).status, 200);
  });
}

test('a rate limit error is not replayed, and a replay counts against the rate limit like any request', async (t) => {
  const account = await stack.createAccount({ rpm: 3 });
  const [storedKey, lateKey] = [createKey(), createKey()];
  const body = { model: 'chat', ...say(createWord()) };
  t.is((await send(chats, account, body, storedKey)).status, 200);
  const replayed = await send(chats, account, body, storedKey);
  t.is(replayed.headers.get('idempotent-replayed'), 'true');
  t.is(replayed.headers.get('x-ratelimit-limit-requests'), '3');
  t.is(replayed.headers.get('x-ratelimit-remaining-requests'), '1');
  t.is(
    (await send(chats, account, { ...body, seed: 1 }, storedKey)).status,
    409,
    'a conflict counts against the rate limit as well',
  );
  t.is((await send(chats, account, body, lateKey)).status, 429);
  const limited = await send(chats, account, body, storedKey);
  t.is(limited.status, 429, 'a replay at the rate limit');
  t.truthy(limited.headers.get('retry-after'));
  await stack.redis.del(redisKeys.rpmWindow(account.id));
  t.is((await send(chats, account, body, storedKey)).headers.get('idempotent-replayed'), 'true');
  const afterwards = await send(chats, account, body, lateKey);
  t.is(afterwards.status, 200);
  t.is(afterwards.headers.get('idempotent-replayed'), null);
});

test('both callers of a failing request get the error, and neither is charged', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const word = createWord();
  const body = { model: 'broken-chat', ...say(word) };
  const pair = await Promise.all([send(chats, account, body, key), send(chats, account, body, key)]);
  t.deepEqual(
    pair.map((response) => response.status),
    [502, 502],
  );
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

for (const stream of [false, true]) {
  const kind = stream ? 'stream' : 'chat';
  test(`if the caller of a ${kind} disconnects midway, the call continues, is charged in full once, and can be replayed`, async (t) => {
    const account = await stack.createAccount();
    const key = createKey();
    const word = createWord();
    const text = `${word} ${'cat '.repeat(30)}end`;
    const body = { model: 'drip-chat', ...say(text), ...(stream ? streamed : {}) };
    const caller = new AbortController();
    const disconnecting = fetch(`${stack.url}${chats}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${account.apiKey}`,
        ...key,
      },
      body: JSON.stringify(body),
      signal: caller.signal,
    });
    const call = await vendor.requests.waitFor((entry) => JSON.stringify(entry.body).includes(word));
    if (stream) await (await disconnecting).body!.getReader().read();
    caller.abort();
    await disconnecting.catch(() => undefined);
    const response = await send(chats, account, body, key);
    t.is(response.status, 200);
    t.is(response.headers.get('idempotent-replayed'), 'true');
    if (stream) {
      const { text: replyText, isDone } = parseSse(response.text);
      t.true(isDone);
      t.is(replyText, `You said: ${text}`);
    } else t.true(response.text.includes(text));
    t.false(call.isAborted);
    t.is(countCalls(word), 1);
    t.is(await readAmountCharged(stack, account.id, '100'), costOf(response));
    t.is((await send(chats, account, body, key)).text, response.text);
  });
}

test('a caller that joins a stream midway gets the whole stream, whether or not the first caller reads', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const word = createWord();
  const text = `${word} ${'cat '.repeat(40)}end`;
  const body = { model: 'drip-chat', ...say(text), ...streamed };
  const first = await stack.post(chats, account.apiKey, body, key);
  const reader = first.body!.getReader();
  const head = await reader.read();
  // From here on the first caller stops reading until the others are done.
  const others = await Promise.all([send(chats, account, body, key), send(chats, account, body, key)]);
  for (const response of others) {
    const { text: replyText, isDone } = parseSse(response.text);
    t.true(isDone);
    t.is(replyText, `You said: ${text}`);
  }
  const chunks = [Buffer.from(head.value)];
  for (let next = await reader.read(); !next.done; next = await reader.read())
    chunks.push(Buffer.from(next.value));
  t.is(Buffer.concat(chunks).toString(), others[0].text);
  t.is(countCalls(word), 1);
});

for (const { mistake, key } of [
  { mistake: 'an empty key', key: '' },
  { mistake: 'a key of spaces', key: '   ' },
  { mistake: 'a key of 256 characters', key: 'k'.repeat(256) },
  { mistake: 'a key that is not ASCII', key: 'caf\u00e9' },
]) {
  test(`${mistake} is a 422 that reports the header, and nothing is reserved`, async (t) => {
    const account = await stack.createAccount();
    const body = { model: 'chat', ...say('hi') };
    const { status, text } = await send(chats, account, body, { 'idempotency-key': key });
    t.is(status, 422);
    const { detail, error } = JSON.parse(text) as { detail: { loc: string[] }[]; error: { code: string } };
    t.is(error.code, 'validation_failed');
    t.deepEqual(detail[0]?.loc, ['header', 'Idempotency-Key']);
    t.deepEqual(await findReservations(stack, account.id), []);
  });
}

test('a key of 255 characters with every kind of printable ASCII is accepted', async (t) => {
  const account = await stack.createAccount();
  const key = { 'idempotency-key': `!"#$%&'()*+,-./:;<=>?@[]^_\`{|}~ \\${'k'.repeat(222)}` };
  t.is(key['idempotency-key'].length, 255);
  const body = { model: 'chat', ...say('hi') };
  const first = await send(chats, account, body, key);
  t.is(first.status, 200);
  t.is((await send(chats, account, body, key)).text, first.text);
});

test('a banned account and a replaced API key get no replay', async (t) => {
  const accounts = new AccountStore(stack.mongo.db, stack.config);
  const apiKeys = new ApiKeyStore(stack.redis, accounts);
  const account = await stack.createAccount();
  const key = createKey();
  const body = { model: 'chat', ...say(createWord()) };
  const first = await send(chats, account, body, key);
  t.is(first.status, 200);
  const replaced = await accounts.replaceKey(account.id);
  await stack.redis.hset(redisKeys.account(account.id), 'key', replaced!.keyHash);
  t.is((await send(chats, account, body, key)).status, 401);
  await apiKeys.forget(replaced!.old.keyHash);
  const again = { ...account, apiKey: replaced!.apiKey };
  t.is(
    (await send(chats, again, body, key)).text,
    first.text,
    'the account is the same, and so is its idempotency key',
  );
  await stack.redis.hset(redisKeys.account(account.id), 'ban', '1');
  t.is((await send(chats, again, body, key)).status, 403);
});

test('a stored response is replayed even if the balance is used up', async (t) => {
  const account = await stack.createAccount();
  const key = createKey();
  const body = { model: 'chat', ...say(createWord()) };
  const first = await send(chats, account, body, key);
  await stack.redis.hset(redisKeys.account(account.id), 'bal', '0');
  t.is((await send(chats, account, body, key)).text, first.text);
});

test('a stored response and its key expire after a day and not earlier', async (t) => {
  const account = await stack.createAccount();
  const response = await send(chats, account, { model: 'chat', ...say('hi') }, createKey());
  const day = 24 * 60 * 60;
  const [claim] = await findKeys(stack.redis, `mg:*:claim:${account.id}:*`);
  const claimTtl = await stack.redis.ttl(claim!);
  t.true(claimTtl > day - 60 && claimTtl <= day, String(claimTtl));
  const ttl = await stack.redis.ttl(
    redisKeys.storedFrames(account.id, response.headers.get('x-request-id')!),
  );
  t.true(ttl >= claimTtl && ttl <= day + 7_200, String(ttl));
});

/** The official package has the option, but sends it only if `idempotencyHeader` is set. */
class KeyedClient extends OpenAI {
  protected override idempotencyHeader = 'Idempotency-Key';
}

test("the official client's idempotencyKey gives two calls the same response, streamed or not", async (t) => {
  const account = await stack.createAccount();
  const client = new KeyedClient({ apiKey: account.apiKey, baseURL: `${stack.url}/v1`, maxRetries: 0 });
  const word = createWord();
  const request = { model: 'chat', messages: [{ role: 'user' as const, content: word }] };
  const idempotencyKey = randomUUID();
  const first = await client.chat.completions.create(request, { idempotencyKey });
  const second = await client.chat.completions.create(request, { idempotencyKey });
  t.is(second.id, first.id);
  t.deepEqual(second.choices, first.choices);
  t.is(countCalls(word), 1);
  const texts: string[] = [];
  const streamKey = randomUUID();
  for (let i = 0; i < 2; i++) {
    const stream = await client.chat.completions.create(
      { ...request, stream: true },
      { idempotencyKey: streamKey },
    );
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    texts.push(text);
  }
  t.deepEqual(texts, [`You said: ${word}`, `You said: ${word}`]);
  await t.throwsAsync(client.chat.completions.create({ ...request, temperature: 0.1 }, { idempotencyKey }), {
    instanceOf: OpenAI.ConflictError,
  });
});

const many = { model: 'vectors', input: Array.from({ length: 40 }, (_, i) => `input ${i}`) };

test('a large response is replayed even if the object store was down when it was created', async (t) => {
  const s3 = await startEmbeddedS3({ dir: `${stack.dir}/gone`, accessKeyId: 'k', secretAccessKey: 's' });
  await s3.close();
  const ownStack = await useStack(t, { catalog: catalogOf(vendor.url), env: { S3_ENDPOINT: s3.endpoint } });
  const account = await ownStack.createAccount();
  const key = createKey();
  const first = await send('/v1/embeddings', account, many, key, ownStack.url);
  t.is(first.status, 200);
  const second = await send('/v1/embeddings', account, many, key, ownStack.url);
  t.is(second.headers.get('idempotent-replayed'), 'true');
  t.true(second.text === first.text);
  t.is(await readAmountCharged(ownStack, account.id, '100'), costOf(first));
});

test('if the object store is down, replaying a large response is a retryable 503', async (t) => {
  const credentials = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' };
  const s3 = await startEmbeddedS3({ dir: `${stack.dir}/going`, ...credentials });
  const ownStack = await useStack(t, { catalog: catalogOf(vendor.url), env: { S3_ENDPOINT: s3.endpoint } });
  const account = await ownStack.createAccount();
  const key = createKey();
  await waitFor('the bucket', async () => {
    const { checks } = (await (await fetch(`${ownStack.url}/v1/health`)).json()) as {
      checks: { s3: string };
    };
    return checks.s3 === 'ok';
  });
  t.is((await send('/v1/embeddings', account, many, key, ownStack.url)).status, 200);
  await s3.close();
  const { status, headers } = await send('/v1/embeddings', account, many, key, ownStack.url);
  t.is(status, 503);
  t.truthy(headers.get('retry-after'));
});

test('queued requests with an Idempotency-Key still get their responses if their api process loses its Redis subscription', async (t) => {
  const ownStack = await useStack(t, { catalog: catalogOf(vendor.url), workers: [] });
  const account = await ownStack.createAccount();
  const responses = Promise.all([
    send(
      '/v1/images/generations',
      account,
      { model: 'slow-picture', prompt: 'a fox' },
      createKey(),
      ownStack.url,
    ),
    send(chats, account, { model: 'slow-chat', ...say('hi') }, createKey(), ownStack.url),
  ]);
  const isQueued = async (): Promise<boolean> =>
    (await ownStack.redis.llen('{bull}:image:wait')) + (await ownStack.redis.llen(redisKeys.readyQueue)) ===
    2;
  await waitFor('both requests to be queued', isQueued);
  const countSubscribers = async (): Promise<unknown> =>
    await ownStack.redis.spublish(redisChannels.apis, '');
  await ownStack.redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await waitFor('the api process to subscribe again', async () => (await countSubscribers()) === 1);
  await ownStack.startWorker();
  t.deepEqual(
    (await responses).map((response) => response.status),
    [200, 200],
  );
});

test('idempotency claims are stored in the shard of their account', async (t) => {
  const account = await stack.createAccount();
  await send(chats, account, { model: 'chat', ...say('hi') }, createKey());
  const [claim] = await findKeys(stack.redis, `mg:*:claim:${account.id}:*`);
  t.true(claim!.includes(`{s${String(shardOf(account.id)).padStart(2, '0')}}`));
});
