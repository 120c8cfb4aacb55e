import test from 'ava';
import { startVendorSimulator } from '../../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { findReservations, readAmountCharged, waitForNoReservation } from '../../support/observe.ts';
import { useStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

const catalog = `
upstreams:
  builtin: { kind: builtin }
models:
  - { id: echo, type: chat, context: 200000, pricing: { prompt: 50, completion: 150 }, routes: [{ upstream: builtin, model: demo-echo }] }
`;
const large = JSON.stringify({
  model: 'echo',
  max_tokens: 16,
  messages: [{ role: 'user', content: 'слово '.repeat(20_000) }],
});
const payloadKeys = redisKeys.payload('*');

test('the stored body of a large chat is read by the worker and then deleted', async (t) => {
  const stack = await useStack(t, { workers: [], catalog });
  const account = await stack.createAccount({ balance: '100' });
  const pending = stack.post('/v1/chat/completions', account.apiKey, large);
  await waitFor('the request to be queued', async () => (await stack.redis.llen(redisKeys.readyQueue)) === 1);
  t.is((await stack.redis.keys(payloadKeys)).length, 1);
  await stack.startWorker();
  const response = await pending;
  t.is(response.status, 200, await response.text());
  t.deepEqual(await stack.redis.keys(payloadKeys), []);
});

test('if the stored body of a chat is lost, the chat fails immediately and is not charged', async (t) => {
  const stack = await useStack(t, { workers: [], catalog });
  const account = await stack.createAccount({ balance: '100' });
  const pending = stack.post('/v1/chat/completions', account.apiKey, large);
  await waitFor('the request to be queued', async () => (await stack.redis.llen(redisKeys.readyQueue)) === 1);
  await stack.redis.unlink(await stack.redis.keys(payloadKeys));
  await stack.startWorker();
  const response = await pending;
  t.is(response.status, 503);
  t.regex(await response.text(), /service_unavailable/);
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

test('if a large embedding request is cancelled in its queue, its body is deleted unread and it is not charged', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    workers: [],
    catalog: `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendor.url}/v1" }
models:
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: vendor, model: emb }] }
`,
  });
  const account = await stack.createAccount({ balance: '100' });
  const input = Array.from({ length: 200 }, (_, i) => `${i} ${'some words '.repeat(100)}`);
  const caller = new AbortController();
  const pending = fetch(`${stack.url}/v1/embeddings`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'vectors', input }),
    signal: caller.signal,
  });
  await waitFor(
    'the request to be queued',
    async () => (await stack.redis.llen('{bull}:embedding:wait')) === 1,
  );
  t.is((await stack.redis.keys(payloadKeys)).length, 1);
  caller.abort();
  t.is(await pending.catch(() => 'left'), 'left');
  await waitFor('its body to be deleted', async () => (await stack.redis.keys(payloadKeys)).length === 0);
  t.is((await findReservations(stack, account.id)).length, 1);
  await stack.startWorker();
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  t.is(vendor.requests.counters.total, 0);
});
