import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Jobs of images wait on one queue for all accounts. */

let vendor: VendorSimulator;
let stack: TestStack;

test.before(async () => {
  vendor = await startVendorSimulator();
  stack = await startStack({
    catalog: `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendor.url}/v1" }
models:
  - { id: square, type: image, context: 8192, pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: gpt-image-square+slow-300 }] }
`,
    workers: [{ queues: ['image'], concurrency: 1 }],
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

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
  await Promise.all(drawn);
  // After the one that runs, and one that the worker may have taken since.
  t.true(order.indexOf('caller') <= 2, order.join(' '));
});
