import test from 'ava';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startChat } from '../support/disconnecting-caller.ts';
import { findReservations, waitForNoReservation } from '../support/observe.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * The slots of a worker are shared by all accounts and models, including requests that only wait for their vendor.
 */

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
  - { id: ${name}-embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: ${name}, model: ${name}-embedding }] }
  - { id: ${name}-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: ${name}, model: ${name}-chat, onDisconnect: drain }] }`,
  )
  .join('')}
`,
  (started) => {
    ({ stack, vendor } = started);
  },
  { workers: [{ queues: ['chat', 'image', 'embedding'], concurrency: 256 }], api: { firstCommentMs: 1_900 } },
);

const kinds = [
  { kind: 'image', path: '/v1/images/generations', body: { prompt: 'a fox' }, requestCount: 200, more: 40 },
  { kind: 'embedding', path: '/v1/embeddings', body: {}, requestCount: 400, more: 100 },
  {
    kind: 'chat',
    path: '/v1/chat/completions',
    body: { messages: [{ role: 'user', content: 'hi' }] },
    requestCount: 300,
    more: 40,
  },
];
type Kind = (typeof kinds)[number];

/** Half of the worker's bulk slots: the maximum for one account while it is the only one. */
const bulkShare = 64;

let textNumber = 0;

/** Sends a request with a unique text, because equal requests share calls. */
function post({ kind, path, body }: Kind, account: TestAccount, model: string, signal?: AbortSignal) {
  const input = kind === 'embedding' ? { input: `fox ${(textNumber += 1)}` } : {};
  return fetch(`${stack.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, ...body, ...input }),
    ...(signal && { signal }),
  });
}

async function send(kind: Kind, account: TestAccount, model: string): Promise<number> {
  const response = await post(kind, account, model);
  await response.arrayBuffer();
  return response.status;
}

/** Sends requests in rounds, because embeddings that arrive together would be one job. */
async function sendMany(kind: Kind, account: TestAccount, model: string): Promise<Promise<number>[]> {
  const statusPromises: Promise<number>[] = [];
  for (let i = 0; i < kind.requestCount; i++) {
    statusPromises.push(send(kind, account, model));
    if (kind.kind === 'embedding' && i % 4 === 0) await stack.redis.ping();
  }
  return statusPromises;
}

for (const one of kinds) {
  const { kind, more } = one;
  test.serial(
    `${kind} requests of one account that wait for a slow vendor do not block those of other accounts`,
    async (t) => {
      const [heavy, other] = [await stack.createAccount(), await stack.createAccount()];
      const vendorHold = vendor.hold(`slow-${kind}`);
      const statusPromises = await sendMany(one, heavy, `slow-${kind}`);
      await waitFor('both vendor calls to start', () => vendorHold.waiting === 2);
      await waitFor(
        'the reservations of the heavy account',
        async () => (await findReservations(stack, heavy.id)).length === one.requestCount,
      );
      t.is(await send(one, other, `fast-${kind}`), 200);
      // Some of these use bulk slots, half of which are reserved for the other account.
      const statuses = await Promise.all(
        Array.from({ length: more }, () => send(one, other, `fast-${kind}`)),
      );
      t.true(statuses.every((status) => status === 200));
      t.is(vendorHold.waiting, 2, 'none of the first account’s calls has ended');
      vendorHold.end();
      t.true((await Promise.all(statusPromises)).every((status) => status === 200));
    },
  );

  test.serial(
    `if an account disconnects from running ${kind} requests, they still count against its share of the worker slots`,
    async (t) => {
      const [heavy, other] = [await stack.createAccount(), await stack.createAccount()];
      const vendorHold = vendor.hold(`wide-${kind}`);
      const countBulk = (): Promise<number> => stack.redis.llen(`{bull}:${kind}-bulk:active`);
      // For chats: more calls than a worker has quick slots for images. For the others: until the account uses its whole
      // share of the bulk slots, because earlier requests may have run on other slots.
      const hasMany = async (): Promise<boolean> =>
        kind === 'chat' ? vendorHold.waiting >= 70 : (await countBulk()) >= bulkShare;
      // One at a time, because embeddings that arrive together are one job: each has a worker slot and a vendor call
      // before its caller disconnects.
      let disconnected = 0;
      while (!(await hasMany())) {
        const client = new AbortController();
        const request = post(one, heavy, `wide-${kind}`, client.signal).catch(() => null);
        disconnected += 1;
        await waitFor('the vendor call to start', () => vendorHold.waiting === disconnected);
        client.abort();
        await request;
      }
      t.log(`${disconnected} calls are in flight for disconnected callers`);
      const statusPromises = Array.from({ length: 8 }, () => send(one, heavy, `wide-${kind}`));
      t.is(await send(one, other, `fast-${kind}`), 200);
      if (kind !== 'chat') t.is(await countBulk(), bulkShare, 'disconnected requests use up the share');
      vendorHold.end();
      t.true((await Promise.all(statusPromises)).every((status) => status === 200));
      await waitForNoReservation(stack, heavy.id);
    },
  );
}

test.serial(
  'a chat that waits for a worker slot reports its position, and releases its reservation when its caller disconnects',
  async (t) => {
    const kind = kinds[2]!;
    const heavy = await stack.createAccount();
    const vendorHold = vendor.hold('slow-chat');
    const statusPromises = await sendMany(kind, heavy, 'slow-chat');
    await waitFor(
      'the reservations of the heavy account',
      async () => (await findReservations(stack, heavy.id)).length === kind.requestCount,
    );
    const last = startChat(stack, heavy.apiKey, { model: 'slow-chat', stream: true });
    await last.readUntil(': queued position=');
    t.is((await findReservations(stack, heavy.id)).length, kind.requestCount + 1);
    last.leave();
    await waitFor(
      'the reservation of the disconnected caller to be released',
      async () => (await findReservations(stack, heavy.id)).length === kind.requestCount,
    );
    vendorHold.end();
    t.true((await Promise.all(statusPromises)).every((status) => status === 200));
  },
);
