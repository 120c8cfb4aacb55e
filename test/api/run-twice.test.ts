import { Queue } from 'bullmq';
import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { bullPrefix } from '../../shared/platform/redis/redis-keys.ts';
import { readAmountCharged, toNano, waitForNoReservation } from '../support/observe.ts';
import { useStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';

for (const { kind, path, body } of [
  { kind: 'image', path: '/v1/images/generations', body: { model: 'slow-image', prompt: 'a red fox' } },
  { kind: 'embedding', path: '/v1/embeddings', body: { model: 'slow-embedding', input: 'one two' } },
]) {
  test(`an ${kind} job that two workers run concurrently is charged and logged once`, async (t) => {
    const vendor = await startVendorSimulator();
    t.teardown(() => vendor.close());
    const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), workers: [] });
    const account = await stack.createAccount();
    const vendorHold = vendor.hold(kind === 'image' ? 'img+slow-4000' : 'emb+slow-4000');
    t.teardown(() => vendorHold.end());
    const responsePromise = stack.post(path, account.apiKey, body);
    await waitFor('the job', async () => (await stack.redis.llen(`${bullPrefix}:${kind}:wait`)) === 1);
    const queue = new Queue(kind, { connection: stack.redis, prefix: bullPrefix });
    t.teardown(() => queue.close());
    const [job] = await queue.getWaiting();
    // Simulates a job that stalled although its worker is still alive: two workers process the same item.
    await queue.add(job!.name, job!.data);
    await Promise.all([stack.startWorker({ concurrency: 1 }), stack.startWorker({ concurrency: 1 })]);
    await waitFor('both vendor calls', () => vendorHold.waiting === 2);
    vendorHold.end();
    const response = await responsePromise;
    t.is(response.status, 200);
    const { usage } = (await response.json()) as { usage: { cost_request: number } };
    await waitFor(
      'both attempts to end',
      async () => (await queue.getActiveCount()) + (await queue.getWaitingCount()) === 0,
    );
    await waitForNoReservation(stack, account.id);
    t.is(vendor.requests.counters.total, 2);
    t.is(await readAmountCharged(stack, account.id, '100'), toNano(usage.cost_request));
    const rows = stack.mongo.db.collection('request_logs');
    await waitFor('the log row', async () => (await rows.countDocuments({ accountId: account.id })) > 0);
    t.is(await rows.countDocuments({ accountId: account.id }), 1);
  });
}
