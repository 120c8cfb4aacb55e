import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { postJson } from '../support/post-json.ts';
import { useStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { startRole } from '../support/worker-process.ts';

/**
 * Callers that lose their connection because a process dies are charged for the output generated until then, not for
 * the rest.
 */

test('charges nothing for a chat if its api process is killed before any output', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: vendorCatalog(vendor.url) });
  const account = await stack.createAccount();
  const api = await startRole(t, 'api', stack.env);
  const pending = postJson(`${String(api.readyLine['url'])}/v1/chat/completions`, account.apiKey, {
    model: 'slow-chat',
    messages: [{ role: 'user', content: 'one two three' }],
  });
  await vendor.requests.waitFor(() => true);
  await api.kill();
  await t.throwsAsync(pending);
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

testWithOwnStore('Redis')('charges for only part of a stream if a Redis outage interrupts it', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), durableRedis: true });
  const account = await stack.createAccount();
  const words = 300;
  const content = Array.from({ length: words }, (_, i) => `w${i}`).join(' ');
  const response = await stack.post('/v1/chat/completions', account.apiKey, {
    model: 'drip-chat',
    stream: true,
    messages: [{ role: 'user', content }],
  });
  const reader = response.body!.getReader();
  await reader.read();
  await stack.killRedis();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    text += Buffer.from(value).toString();
  }
  t.regex(text, /"code":"service_unavailable"/);
  const lastEvent = text.slice(text.lastIndexOf('data: '));
  t.true(lastEvent.includes('You may have been charged for output that was generated.'), lastEvent);
  t.true(lastEvent.includes(response.headers.get('x-request-id')!), lastEvent);
  await stack.restartRedis();
  await waitUntilReady(stack.redis);
  await waitForNoReservation(stack, account.id);
  const { completionTokens } = await findRow(stack, response.headers.get('x-request-id')!);
  t.true(completionTokens > 0 && completionTokens < words / 2, `${completionTokens} tokens were charged`);
});

for (const { kind, path, body, cost } of [
  {
    kind: 'image',
    path: '/images/generations',
    body: { model: 'slow-image', prompt: 'a red fox' },
    cost: 1_500_000_000n,
  },
  {
    kind: 'embedding',
    path: '/embeddings',
    body: { model: 'slow-embedding', input: 'one two' },
    cost: 14_000n,
  },
]) {
  test(`if an api process is killed during the vendor call of an ${kind}, the call completes and is charged once`, async (t) => {
    const vendor = await startVendorSimulator();
    t.teardown(() => vendor.close());
    const stack = await useStack(t, { catalog: vendorCatalog(vendor.url) });
    const account = await stack.createAccount();
    const api = await startRole(t, 'api', stack.env);
    const pending = postJson(`${String(api.readyLine['url'])}/v1${path}`, account.apiKey, body);
    await vendor.requests.waitFor(() => true);
    await api.kill();
    await t.throwsAsync(pending);
    await waitForNoReservation(stack, account.id);
    t.is(vendor.requests.counters.total, 1);
    t.is(vendor.requests.counters.aborted, 0);
    t.is(await readAmountCharged(stack, account.id, '100'), cost);
  });
}

test('charges at most once for an image if its caller disconnects and its worker is then killed, and nothing hangs', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), workers: [] });
  const account = await stack.createAccount();
  const worker = await startRole(t, 'worker', stack.env);
  const caller = new AbortController();
  const pending = fetch(`${stack.url}/v1/images/generations`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
    body: JSON.stringify({ model: 'slow-image', prompt: 'a red fox' }),
    signal: caller.signal,
  });
  await vendor.requests.waitFor(() => true);
  caller.abort();
  await t.throwsAsync(pending, { any: true });
  await worker.kill();
  await stack.startWorker();
  await waitForNoReservation(stack, account.id);
  const paid = await readAmountCharged(stack, account.id, '100');
  t.true(paid === 0n || paid === 1_500_000_000n, `${paid}`);
});
