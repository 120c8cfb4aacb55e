import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisChannels, redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { changeSettings } from '../support/change-settings.ts';
import { findReservations, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { postJson } from '../support/post-json.ts';
import { allQueues, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';
import { watchRedis } from '../support/watch-redis.ts';
import { startRole } from '../support/worker-process.ts';
import { testOnOneRedis } from '../support/own-stores.ts';

/** Reservations whose processes were killed, and those whose processes are only slow. */

interface Setup {
  readonly stack: TestStack;
  readonly vendor: VendorSimulator;
  readonly account: TestAccount;
}

async function setUp(t: ExecutionContext): Promise<Setup> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const catalog = `${vendorCatalog(vendor.url)}
  - { id: very-slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: "gpt+slow-24000" }] }
`;
  const stack = await useStack(t, { catalog, workers: [] });
  const account = await stack.createAccount();
  await changeSettings(stack, account.id, { budget: { amountNano: 50_000_000_000n, period: 'monthly' } });
  return { stack, vendor, account };
}

const messages = [{ role: 'user', content: 'one two three' }];
const calls = [
  { kind: 'a chat', path: '/v1/chat/completions', body: { model: 'slow-chat', messages } },
  { kind: 'an image', path: '/v1/images/generations', body: { model: 'slow-image', prompt: 'a red fox' } },
  { kind: 'an embedding', path: '/v1/embeddings', body: { model: 'slow-embedding', input: 'one' } },
];

/** More than the documented 30 s, because the machine may be busy. */
const releaseTimeoutMs = 60_000;

async function checkReleased(t: ExecutionContext, { stack, account }: Setup): Promise<void> {
  await waitFor(
    'the orphans to be released',
    async () => (await findReservations(stack, account.id)).length === 0,
    releaseTimeoutMs,
  );
  const { reservedNano, restrictions } = await stack.readAccount(account.id);
  t.is(reservedNano, 0n);
  t.is(restrictions.budget?.reservedNano, 0n);
}

test('if an api process is killed, the reservations of its queued requests are released', async (t) => {
  const setup = await setUp(t);
  const { stack, account, vendor } = setup;
  const api = await startRole(t, 'api', stack.env);
  const pending = Promise.allSettled(
    calls.map(({ path, body }) => postJson(`${String(api.readyLine['url'])}${path}`, account.apiKey, body)),
  );
  await waitFor(
    'the reservations',
    async () => (await findReservations(stack, account.id)).length === calls.length,
  );
  await api.kill();
  t.true((await pending).every((result) => result.status === 'rejected'));
  // This worker does maintenance, and runs no requests.
  await stack.startWorker({ queues: [] });
  await checkReleased(t, setup);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  // Nobody waits for the requests still in the queues, so a worker removes them without calling a vendor.
  await stack.startWorker();
  await waitFor('the queues to be empty', async () => {
    const waiting = await Promise.all([
      stack.redis.llen(redisKeys.readyQueue),
      stack.redis.llen('{bull}:image:wait'),
      stack.redis.llen('{bull}:embedding:wait'),
      stack.redis.llen('{bull}:image:active'),
      stack.redis.llen('{bull}:embedding:active'),
    ]);
    return waiting.every((count) => count === 0);
  });
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
  t.deepEqual(await findReservations(stack, account.id), []);
  t.is(vendor.requests.counters.byStatus[200] ?? 0, 0, 'no vendor completed a call that nobody waits for');
});

for (const { kind, path, body } of calls) {
  test(`if the api process and the worker of ${kind} are both killed midway, its reservation is released`, async (t) => {
    const setup = await setUp(t);
    const { stack, account, vendor } = setup;
    const api = await startRole(t, 'api', stack.env);
    const worker = await startRole(t, 'worker', stack.env);
    const pending = postJson(`${String(api.readyLine['url'])}${path}`, account.apiKey, body);
    await vendor.requests.waitFor(() => true);
    await Promise.all([api.kill(), worker.kill()]);
    await t.throwsAsync(pending);
    t.is((await findReservations(stack, account.id)).length, 1);
    await stack.startWorker();
    await checkReleased(t, setup);
  });
}

test("a reservation is not released while its request runs or waits, even for longer than an orphan's lifetime", async (t) => {
  const setup = await setUp(t);
  const { stack, account, vendor } = setup;
  await stack.startWorker({ ...allQueues, concurrency: 1 });
  const slow = stack.post('/v1/chat/completions', account.apiKey, { model: 'very-slow-chat', messages });
  await vendor.requests.waitFor(() => true);
  const queued = stack.post('/v1/chat/completions', account.apiKey, { model: 'chat', messages });
  await waitFor('both reservations', async () => (await findReservations(stack, account.id)).length === 2);
  const both = new Set(await findReservations(stack, account.id));
  const held = redisKeys.heldRequests(shardOf(account.id));
  // Both reservations must exist until the first response, because a reservation ends with the response to its request.
  const first = await slow;
  t.is(first.status, 200);
  t.true(both.has(first.headers.get('x-request-id')!));
  const second = await queued;
  t.is(second.status, 200);
  t.true(both.has(second.headers.get('x-request-id')!));
  const costs = await Promise.all(
    [first, second].map(async (response) => {
      const { usage } = (await response.json()) as { usage: { cost_request: number } };
      return usage.cost_request;
    }),
  );
  t.true(costs.every((cost) => cost > 0));
  await waitForNoReservation(stack, account.id);
  t.is(
    await stack.redis.hlen(redisKeys.orphans(shardOf(account.id))),
    0,
    'neither reservation was mistaken for an orphan',
  );
  t.is(Number(await readAmountCharged(stack, account.id, '100')) / 1e9, costs[0]! + costs[1]!);
  await waitFor('the heartbeats to be deleted', async () => (await stack.redis.zcard(held)) === 0, 60_000);
});

for (const { kind, path, body } of calls) {
  testOnOneRedis()(
    `a worker acquires a vendor slot for ${kind} only after it has checked that the caller still waits`,
    async (t) => {
      const { stack, account } = await setUp(t);
      await stack.startWorker();
      const commands = await watchRedis(t, stack.env.REDIS_URL!);
      const response = await stack.post(path, account.apiKey, body);
      t.is(response.status, 200);
      const accepted = commands.findIndex(
        ({ name, args }) => name === 'spublish' && args.startsWith(`"${redisChannels.reply('')}`),
      );
      const slot = commands.findIndex(
        ({ name, args }) => name === 'evalsha' && args.includes(redisKeys.callsOfUpstream('vendor')),
      );
      t.true(accepted !== -1 && accepted < slot, `${accepted} and ${slot}`);
      // Redis processes the commands of one connection in order.
      t.is(commands[accepted]!.from, commands[slot]!.from);
    },
  );
}
