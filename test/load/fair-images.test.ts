import test from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Image jobs of all accounts wait in one queue. */

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(
  test,
  (url) => `
upstreams:
  vendor: { kind: openai, baseUrl: "${url}/v1" }
models:
  - { id: square, type: image, context: 8192, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: gpt-image-square }] }
`,
  (started) => {
    ({ stack, vendor } = started);
  },
  { workers: [{ queues: ['image'], concurrency: 1 }] },
);

const countQueued = async (): Promise<number> => {
  const [waiting, prioritized] = await Promise.all([
    stack.redis.llen('{bull}:image:wait'),
    stack.redis.zcard('{bull}:image:prioritized'),
  ]);
  return waiting + prioritized;
};

test('an image of one account does not wait behind many images of another', async (t) => {
  const [heavy, caller] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  const order: string[] = [];
  const vendorHold = vendor.hold('gpt-image-square');
  t.teardown(() => vendorHold.end());
  const draw = async (name: string, { apiKey }: TestAccount, headers = {}): Promise<void> => {
    const body = { model: 'square', prompt: 'a square' };
    const response = await stack.post('/v1/images/generations', apiKey, body, headers);
    t.is(response.status, 200);
    await response.arrayBuffer();
    order.push(name);
  };
  const requests = Array.from({ length: 6 }, async (_, i) => {
    await draw('heavy', heavy, i % 2 === 0 ? {} : { 'idempotency-key': `crowd-${i}` });
  });
  await waitFor('the requests of the heavy account to be queued', async () => (await countQueued()) === 5);
  requests.push(draw('caller', caller));
  await waitFor('the request of the caller to be queued', async () => (await countQueued()) === 6);
  vendorHold.end();
  await Promise.all(requests);
  // At most two images come before the caller's: the running one, and one that the worker may have started before the
  // caller's was queued.
  t.true(order.indexOf('caller') <= 2, order.join(' '));
});
