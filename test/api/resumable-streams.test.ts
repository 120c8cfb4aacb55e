import test from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { findKeys } from '../support/all-of-redis.ts';
import { readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { parseSse } from '../support/sse-events.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Streams that go on without their reader (`X-On-Disconnect: continue`), and readers that resume them. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", disconnectGraceMs: 0 }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt }] }
  - { id: drip-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt+drip-40 }] }
  - { id: left-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: left }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
`;

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

const words = `${'cat '.repeat(20)}end`;
const resumable = { 'x-on-disconnect': 'continue' };
const createBody = (model: string) => ({
  model,
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: 'user', content: words }],
});

const start = (account: TestAccount, model: string, headers: Record<string, string> = resumable) =>
  stack.post('/v1/chat/completions', account.apiKey, createBody(model), headers);

const resume = (account: TestAccount, id: string, lastEventId?: string): Promise<Response> =>
  fetch(`${stack.url}/v1/jobs/${id}/stream`, {
    headers: {
      authorization: `Bearer ${account.apiKey}`,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  });

/** Returns the events with their ids, without comments. */
const listEvents = (text: string): { readonly id: string; readonly block: string }[] =>
  [...text.matchAll(/^id: (\d+\.[\da-f]{8})\n(data: .*)\n\n/gm)].map(([, id = '', block = '']) => ({
    id,
    block,
  }));

/** Returns the text without its ids. */
const textOf = (events: readonly { readonly block: string }[]): string =>
  events.map(({ block }) => `${block}\n\n`).join('');

test('a reader that was cut off gets what it has missed and the rest, nothing twice, and pays once for the whole', async (t) => {
  const account = await stack.createAccount();
  const response = await start(account, 'drip-chat');
  const id = response.headers.get('x-request-id')!;
  const reader = response.body!.getReader();
  let first = '';
  while (listEvents(first).length < 3) first += Buffer.from((await reader.read()).value).toString();
  await reader.cancel();
  const seen = listEvents(first);
  const rest = await resume(account, id, seen.at(-1)!.id);
  t.is(rest.status, 200);
  t.is(rest.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const missed = listEvents(await rest.text());
  const ids = [...seen, ...missed].map((event) => Number(event.id.split('.')[0]));
  t.deepEqual(
    ids,
    ids.map((_, i) => i + 1),
  );
  const whole = parseSse(textOf([...seen, ...missed]));
  t.true(whole.isDone);
  t.is(whole.text, `You said: ${words}`);
  const usage = whole.events.at(-1)?.usage;
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), toNano(Number(usage?.['cost_request'])));
});

test('a stream that has ended can be read from any event on, by several readers, until they have everything', async (t) => {
  const account = await stack.createAccount();
  const response = await start(account, 'chat');
  const id = response.headers.get('x-request-id')!;
  const all = listEvents(await response.text());
  t.true(parseSse(textOf(all)).isDone);
  const readers = await Promise.all(
    [undefined, '0', '1.00000000', all[0]!.id, all.at(-2)!.id].map((last) => resume(account, id, last)),
  );
  const texts = await Promise.all(readers.map((reader) => reader.text()));
  const from = [0, 0, 0, 1, all.length - 1];
  for (const [i, text] of texts.entries()) t.deepEqual(listEvents(text), all.slice(from[i]));
  const nothing = await resume(account, id, all.at(-1)!.id);
  t.is(nothing.status, 204);
  const byQuery = await fetch(`${stack.url}/v1/jobs/${id}/stream?last_event_id=${all.at(-2)!.id}`, {
    headers: { authorization: `Bearer ${account.apiKey}` },
  });
  t.deepEqual(listEvents(await byQuery.text()), all.slice(-1));
});

test('a stream is kept for its account alone, for minutes, and only if that was asked for', async (t) => {
  const account = await stack.createAccount();
  // Keys of accounts in the same shard differ only in their own part.
  let other = await stack.createAccount();
  while (shardOf(other.id) !== shardOf(account.id)) other = await stack.createAccount();
  const kept = await start(account, 'chat');
  const id = kept.headers.get('x-request-id')!;
  await kept.text();
  t.is((await resume(other, id)).status, 404);
  for (const key of await findKeys(stack.redis, `*${id}*`)) {
    const seconds = await stack.redis.ttl(key);
    t.true(seconds >= 590 && seconds <= 1_200, `${key}: ${seconds}`);
  }

  const plain = await start(account, 'chat', {});
  const text = await plain.text();
  t.notRegex(text, /^id:/m);
  const missing = await resume(account, plain.headers.get('x-request-id')!);
  t.is(missing.status, 404);
  t.regex(
    ((await missing.json()) as { error: { message: string } }).error.message,
    /X-On-Disconnect: continue/,
  );
  t.deepEqual(await findKeys(stack.redis, `*${plain.headers.get('x-request-id')}*`), []);
});

test('other stored responses are not streams that can be resumed', async (t) => {
  const account = await stack.createAccount();
  const repeatable = { 'idempotency-key': 'not a stream to resume' };
  const stored = await start(account, 'chat', repeatable);
  t.true(parseSse(await stored.text()).isDone);
  const chat = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] };
  const whole = await stack.post('/v1/chat/completions', account.apiKey, chat, {
    'idempotency-key': 'a whole response',
  });
  for (const id of [stored.headers.get('x-request-id')!, whole.headers.get('x-request-id')!])
    t.is((await resume(account, id)).status, 404);
});

test('each call to resume a stream takes a slot of the requests per minute', async (t) => {
  const account = await stack.createAccount({ rpm: 2 });
  const response = await start(account, 'chat');
  await response.text();
  const id = response.headers.get('x-request-id')!;
  t.is((await resume(account, id)).status, 200);
  t.is((await resume(account, id)).status, 429);
});

test('by default, and with `cancel`, a stream ends with its reader', async (t) => {
  for (const headers of [{}, { 'x-on-disconnect': 'cancel' }] as Record<string, string>[]) {
    const account = await stack.createAccount();
    const hold = vendor.hold('left');
    const abort = new AbortController();
    const pending = fetch(`${stack.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}`, ...headers },
      body: JSON.stringify(createBody('left-chat')),
      signal: abort.signal,
    });
    await waitFor('the vendor call', () => hold.waiting === 1);
    abort.abort();
    await t.throwsAsync(pending, { any: true });
    await waitFor('the vendor call to be aborted', () => hold.waiting === 0);
    hold.end();
  }
});

test('a failure before the first event can be read with its status, like the call itself', async (t) => {
  const account = await stack.createAccount({ balance: '0' });
  const refused = await start(account, 'chat');
  t.is(refused.status, 402);
  t.is((await resume(account, refused.headers.get('x-request-id')!)).status, 404, 'it was never admitted');
});

test('the header is rejected where it cannot be followed', async (t) => {
  const account = await stack.createAccount();
  const chat = { model: 'chat', messages: [{ role: 'user', content: 'hi' }] };
  for (const [path, body, value] of [
    ['chat/completions', { ...chat, stream: true }, 'stay'],
    ['chat/completions', chat, 'continue'],
    ['embeddings', { model: 'vectors', input: 'a' }, 'continue'],
  ] as const) {
    const response = await stack.post(`/v1/${path}`, account.apiKey, body, { 'x-on-disconnect': value });
    t.is(response.status, 422);
    const { detail } = (await response.json()) as { detail: { loc: string[] }[] };
    t.deepEqual(detail[0]?.loc, ['header', 'X-On-Disconnect']);
  }
});
