import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What a worker runs at once is shared by all accounts and models, also by those that only wait for their vendor. */

let vendor: VendorSimulator;
let stack: TestStack;

test.before(async () => {
  vendor = await startVendorSimulator();
  stack = await startStack({
    catalog: `
upstreams:
  slow: { kind: openai, baseUrl: "${vendor.url}/v1", maxConcurrency: 2, maxBatchInputs: 8 }
  fast: { kind: openai, baseUrl: "${vendor.url}/v1" }
models:
${['slow', 'fast']
  .map(
    (name) => `
  - { id: ${name}-image, type: image, context: 8192, pricing: { type: image, cost_per_image: 0.1 }, routes: [{ upstream: ${name}, model: ${name}-image }] }
  - { id: ${name}-embedding, type: embedding, context: 8192, dimensions: { default: 64 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: ${name}, model: ${name}-embedding }] }
  - { id: ${name}-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: ${name}, model: ${name}-chat }] }`,
  )
  .join('')}
`,
    workers: [{ queues: ['chat', 'image', 'embedding'], concurrency: 256 }],
  });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

const countJobs = async (queue: string): Promise<number> =>
  (await stack.redis.llen(`{bull}:${queue}:active`)) +
  (await stack.redis.llen(`{bull}:${queue}:wait`)) +
  (await stack.redis.zcard(`{bull}:${queue}:prioritized`));

for (const { kind, path, body, count } of [
  { kind: 'image', path: '/v1/images/generations', body: { prompt: 'a fox' }, count: 100 },
  { kind: 'embedding', path: '/v1/embeddings', body: {}, count: 400 },
  {
    kind: 'chat',
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'hi' }] },
    count: 300,
  },
]) {
  test.serial(
    `however many ${kind} requests of an account wait for a slow vendor, another account’s runs`,
    async (t) => {
      const [many, one] = [await stack.createAccount(), await stack.createAccount()];
      const held = vendor.hold(`slow-${kind}`);
      const ask = async ({ apiKey }: TestAccount, model: string, i = 0): Promise<number> => {
        const input = kind === 'embedding' ? { input: `fox ${i}` } : {};
        const response = await stack.post(path, apiKey, { model, ...body, ...input });
        await response.arrayBuffer();
        return response.status;
      };
      const answers: Promise<number>[] = [];
      for (let i = 0; i < count; i++) {
        answers.push(ask(many, `slow-${kind}`, i));
        // Embeddings that come together would be one job.
        if (kind === 'embedding' && i % 4 === 0) await stack.redis.ping();
      }
      await waitFor('its calls', () => held.waiting === 2);
      const countBulk = async (): Promise<number> =>
        kind === 'chat' ? await stack.redis.llen(redisKeys.bulkReadyQueue) : await countJobs(`${kind}-bulk`);
      await waitFor('its requests to go the way of bulk', async () => (await countBulk()) > 0);
      if (kind !== 'chat') t.true((await countJobs(kind)) <= 64, 'less than a worker runs of these at once');
      t.is(await ask(one, `fast-${kind}`), 200);
      t.is(await ask(one, `fast-${kind}`, 1), 200);
      t.is(held.waiting, 2, 'none of the others has ended meanwhile');
      held.end();
      t.true((await Promise.all(answers)).every((status) => status === 200));
    },
  );
}
