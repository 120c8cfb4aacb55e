import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { waitUntilReady } from '../../shared/redis/redis-client.ts';
import { findRow, readLoss, waitForNoReservation } from '../support/observe.ts';
import { postJson } from '../support/post-json.ts';
import { useStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { startRole } from '../support/worker-process.ts';

/** Callers whose connection is lost by a death of ours pay for what was generated until then, not for the rest. */

test('a chat whose api process is killed before any output costs nothing', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: vendorCatalog(vendor.url) });
  const account = await stack.createAccount();
  const api = await startRole(t, 'api', stack.env);
  const answer = postJson(`${String(api.readyLine['url'])}/v1/chat/completions`, account.apiKey, {
    model: 'slow-chat',
    messages: [{ role: 'user', content: 'one two three' }],
  });
  await vendor.requests.waitFor(() => true);
  await api.kill();
  await t.throwsAsync(answer);
  await waitForNoReservation(stack, account.id);
  t.is(await readLoss(stack, account.id, '100'), 0n);
});

test('a stream that an outage of Redis ends is not charged to its end', async (t) => {
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
  await stack.restartRedis();
  await waitUntilReady(stack.redis);
  await waitForNoReservation(stack, account.id);
  const { completionTokens } = await findRow(stack, response.headers.get('x-request-id')!);
  t.true(completionTokens > 0 && completionTokens < words / 2, `${completionTokens} tokens were charged`);
});
