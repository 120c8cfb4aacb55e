import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisChannels, redisKeys, shardOf } from '../../shared/redis/redis-keys.ts';
import { findReservations, readLoss, waitForNoReservation } from '../support/observe.ts';
import { postJson } from '../support/post-json.ts';
import { allQueues, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';
import { watchRedis } from '../support/watch-redis.ts';
import { startRole } from '../support/worker-process.ts';
import { testOnOneRedis } from '../support/own-stores.ts';

/** Reservations whose processes were killed, and those whose processes only take long. */

interface Scene {
  readonly stack: TestStack;
  readonly vendor: VendorSimulator;
  readonly account: TestAccount;
}

async function setScene(t: ExecutionContext): Promise<Scene> {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const catalog = `${vendorCatalog(vendor.url)}
  - { id: very-slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: "gpt+slow-24000" }] }
`;
  const stack = await useStack(t, { catalog, workers: [] });
  return { stack, vendor, account: await stack.createAccount() };
}

const messages = [{ role: 'user', content: 'one two three' }];
const calls = [
  { kind: 'a chat', path: '/v1/chat/completions', body: { model: 'slow-chat', messages } },
  { kind: 'an image', path: '/v1/images/generations', body: { model: 'slow-image', prompt: 'a red fox' } },
  { kind: 'an embedding', path: '/v1/embeddings', body: { model: 'slow-embedding', input: 'one' } },
];

/** Above the 30 s that are promised: this machine has others' work to do as well. */
const releasePatienceMs = 60_000;

async function checkReleased(t: ExecutionContext, { stack, account }: Scene): Promise<void> {
  await waitFor(
    'the orphans to be released',
    async () => (await findReservations(stack, account.id)).length === 0,
    releasePatienceMs,
  );
  const { reservedNano } = await stack.readAccount(account.id);
  t.is(reservedNano, 0n);
}

test('requests whose api process is killed while they are queued give their reservations back', async (t) => {
  const scene = await setScene(t);
  const { stack, account, vendor } = scene;
  const api = await startRole(t, 'api', stack.env);
  const answers = Promise.allSettled(
    calls.map(({ path, body }) => postJson(`${String(api.readyLine['url'])}${path}`, account.apiKey, body)),
  );
  await waitFor(
    'the reservations',
    async () => (await findReservations(stack, account.id)).length === calls.length,
  );
  await api.kill();
  t.true((await answers).every((answer) => answer.status === 'rejected'));
  // It looks after shards, and takes no work.
  await stack.startWorker({ queues: [] });
  await checkReleased(t, scene);
  t.is(await readLoss(stack, account.id, '100'), 0n);
  // What is left on the queues is nobody's any more: it asks no vendor.
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
  t.is(await readLoss(stack, account.id, '100'), 0n);
  t.deepEqual(await findReservations(stack, account.id), []);
  t.is(vendor.requests.counters.byStatus[200] ?? 0, 0, 'no vendor finished what nobody waits for');
});

for (const { kind, path, body } of calls) {
  test(`${kind} whose api and worker are both killed midway gives its reservation back`, async (t) => {
    const scene = await setScene(t);
    const { stack, account, vendor } = scene;
    const api = await startRole(t, 'api', stack.env);
    const worker = await startRole(t, 'worker', stack.env);
    const answer = postJson(`${String(api.readyLine['url'])}${path}`, account.apiKey, body);
    await vendor.requests.waitFor(() => true);
    await Promise.all([api.kill(), worker.kill()]);
    await t.throwsAsync(answer);
    t.is((await findReservations(stack, account.id)).length, 1);
    await stack.startWorker();
    await checkReleased(t, scene);
  });
}

test('a request that runs or waits for longer than an orphan would live keeps its reservation', async (t) => {
  const scene = await setScene(t);
  const { stack, account, vendor } = scene;
  await stack.startWorker({ ...allQueues, concurrency: 1 });
  const slow = stack.post('/v1/chat/completions', account.apiKey, { model: 'very-slow-chat', messages });
  await vendor.requests.waitFor(() => true);
  const queued = stack.post('/v1/chat/completions', account.apiKey, { model: 'chat', messages });
  await waitFor('both', async () => (await findReservations(stack, account.id)).length === 2);
  const both = new Set(await findReservations(stack, account.id));
  const held = redisKeys.heldRequests(shardOf(account.id));
  // Until the first is done, both are there: whatever ends, ends by its answer.
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
  t.is(await stack.redis.hlen(redisKeys.orphans(shardOf(account.id))), 0, 'none was taken for an orphan');
  t.is(Number(await readLoss(stack, account.id, '100')) / 1e9, costs[0]! + costs[1]!);
  await waitFor('the marks to be forgotten', async () => (await stack.redis.zcard(held)) === 0, 60_000);
});

for (const { kind, path, body } of calls) {
  testOnOneRedis()(`whether anybody waits for ${kind} is known before a slot of its vendor is`, async (t) => {
    const { stack, account } = await setScene(t);
    await stack.startWorker();
    const commands = await watchRedis(t, stack.env.REDIS_URL!);
    const answer = await stack.post(path, account.apiKey, body);
    t.is(answer.status, 200);
    const accepted = commands.findIndex(
      ({ name, args }) => name === 'spublish' && args.startsWith(`"${redisChannels.reply('')}`),
    );
    const slot = commands.findIndex(
      ({ name, args }) => name === 'evalsha' && args.includes(redisKeys.callsOfUpstream('vendor')),
    );
    t.true(accepted !== -1 && accepted < slot, `${accepted} and ${slot}`);
    // What one connection asks first is answered first.
    t.is(commands[accepted]!.from, commands[slot]!.from);
  });
}
