import test from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startChat } from '../support/leaving.ts';
import { findReservations, waitForNoReservation } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** What a worker runs at once is shared by all accounts and models, also by those that only wait for their vendor. */

let vendor: VendorSimulator;
let stack: TestStack;

useVendorStack(
  test,
  (url) => `
upstreams:
  slow: { kind: openai, baseUrl: "${url}/v1", maxConcurrency: 2, maxBatchInputs: 8 }
  fast: { kind: openai, baseUrl: "${url}/v1" }
  wide: { kind: openai, baseUrl: "${url}/v1", maxConcurrency: 1000 }
models:
${['slow', 'fast', 'wide']
  .map(
    (name) => `
  - { id: ${name}-image, type: image, context: 8192, pricing: { type: image, cost_per_image: 0.1 }, routes: [{ upstream: ${name}, model: ${name}-image }] }
  - { id: ${name}-embedding, type: embedding, context: 8192, dimensions: { default: 64 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: ${name}, model: ${name}-embedding }] }
  - { id: ${name}-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: ${name}, model: ${name}-chat, onDisconnect: drain }] }`,
  )
  .join('')}
`,
  (started) => {
    ({ stack, vendor } = started);
  },
  { workers: [{ queues: ['chat', 'image', 'embedding'], concurrency: 256 }] },
);

const kinds = [
  { kind: 'image', path: '/v1/images/generations', body: { prompt: 'a fox' }, many: 200, more: 40 },
  { kind: 'embedding', path: '/v1/embeddings', body: {}, many: 400, more: 100 },
  {
    kind: 'chat',
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'hi' }] },
    many: 300,
    more: 40,
  },
];
type Kind = (typeof kinds)[number];

/** Half of the worker's runs for bulk: what one account may have of them while it is alone. */
const shareOfBulk = 64;

let asked = 0;

/** Each with another text, as requests that are alike share calls. */
function post({ kind, path, body }: Kind, account: TestAccount, model: string, signal?: AbortSignal) {
  const input = kind === 'embedding' ? { input: `fox ${(asked += 1)}` } : {};
  return fetch(`${stack.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, ...body, ...input }),
    ...(signal && { signal }),
  });
}

async function ask(kind: Kind, account: TestAccount, model: string): Promise<number> {
  const response = await post(kind, account, model);
  await response.arrayBuffer();
  return response.status;
}

/** In rounds: embeddings that come together would be one job. */
async function askMany(kind: Kind, account: TestAccount, model: string): Promise<Promise<number>[]> {
  const answers: Promise<number>[] = [];
  for (let i = 0; i < kind.many; i++) {
    answers.push(ask(kind, account, model));
    if (kind.kind === 'embedding' && i % 4 === 0) await stack.redis.ping();
  }
  return answers;
}

for (const one of kinds) {
  const { kind, more } = one;
  test.serial(`however many ${kind} requests of an account wait for a slow vendor, others run`, async (t) => {
    const [many, other] = [await stack.createAccount(), await stack.createAccount()];
    const held = vendor.hold(`slow-${kind}`);
    const answers = await askMany(one, many, `slow-${kind}`);
    await waitFor('its calls', () => held.waiting === 2);
    await waitFor('its requests', async () => (await findReservations(stack, many.id)).length === one.many);
    t.is(await ask(one, other, `fast-${kind}`), 200);
    // Some of these go the way of bulk, of whose runs the other account has half.
    const statuses = await Promise.all(Array.from({ length: more }, () => ask(one, other, `fast-${kind}`)));
    t.true(statuses.every((status) => status === 200));
    t.is(held.waiting, 2, 'none of the others has ended meanwhile');
    held.end();
    t.true((await Promise.all(answers)).every((status) => status === 200));
  });

  test.serial(
    `an account that leaves its ${kind} requests once they run holds no more than its share`,
    async (t) => {
      const [many, other] = [await stack.createAccount(), await stack.createAccount()];
      const held = vendor.hold(`wide-${kind}`);
      const countBulk = (): Promise<number> => stack.redis.llen(`{bull}:${kind}-bulk:active`);
      // More than the quick runs for images of the worker, were they all to go there; else its share of those for bulk, with
      // however many before it.
      const hasMany = async (): Promise<boolean> =>
        kind === 'chat' ? held.waiting >= 70 : (await countBulk()) >= shareOfBulk;
      // One at a time, as embeddings that come together are one run: each has a run and its call when its caller leaves.
      let left = 0;
      while (!(await hasMany())) {
        const leave = new AbortController();
        const request = post(one, many, `wide-${kind}`, leave.signal).catch(() => null);
        left += 1;
        await waitFor('its call', () => held.waiting === left);
        leave.abort();
        await request;
      }
      t.log(`${left} calls are under way for callers who left`);
      const answers = Array.from({ length: 8 }, () => ask(one, many, `wide-${kind}`));
      t.is(await ask(one, other, `fast-${kind}`), 200);
      if (kind !== 'chat') t.is(await countBulk(), shareOfBulk, 'those whose callers left count');
      held.end();
      t.true((await Promise.all(answers)).every((status) => status === 200));
      await waitForNoReservation(stack, many.id);
    },
  );
}

test.serial(
  'a chat that waits for its share says its place, and gives back what it holds when its caller leaves',
  async (t) => {
    const kind = kinds[2]!;
    const many = await stack.createAccount();
    const held = vendor.hold('slow-chat');
    const answers = await askMany(kind, many, 'slow-chat');
    await waitFor('its requests', async () => (await findReservations(stack, many.id)).length === kind.many);
    const last = startChat(stack, many.apiKey, { model: 'slow-chat', stream: true });
    await last.readUntil(': queued position=');
    t.is((await findReservations(stack, many.id)).length, kind.many + 1);
    last.leave();
    await waitFor('its release', async () => (await findReservations(stack, many.id)).length === kind.many);
    held.end();
    t.true((await Promise.all(answers)).every((status) => status === 200));
  },
);
