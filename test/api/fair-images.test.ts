import test from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Jobs of images wait on one queue for all accounts. */

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

test('an image of one account does not wait behind a crowd of another account’s', async (t) => {
  const [crowd, caller] = await Promise.all([stack.createAccount(), stack.createAccount()]);
  const order: string[] = [];
  const held = vendor.hold('gpt-image-square');
  t.teardown(() => held.end());
  const draw = async (name: string, { apiKey }: TestAccount, headers = {}): Promise<void> => {
    const body = { model: 'square', prompt: 'a square' };
    const answer = await stack.post('/v1/images/generations', apiKey, body, headers);
    t.is(answer.status, 200);
    await answer.arrayBuffer();
    order.push(name);
  };
  const drawn = Array.from({ length: 6 }, async (_, i) => {
    await draw('crowd', crowd, i % 2 === 0 ? {} : { 'idempotency-key': `crowd-${i}` });
  });
  await waitFor('the crowd to be queued', async () => (await countQueued()) === 5);
  drawn.push(draw('caller', caller));
  await waitFor('the caller to be queued', async () => (await countQueued()) === 6);
  held.end();
  await Promise.all(drawn);
  // After the one that runs, and one that the worker may have taken since.
  t.true(order.indexOf('caller') <= 2, order.join(' '));
});
