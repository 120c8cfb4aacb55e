import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { useStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';

for (const { kind, path, body } of [
  {
    kind: 'chat',
    path: '/v1/chat/completions',
    body: { model: 'chat', messages: [{ role: 'user', content: 'hi' }] },
  },
  { kind: 'image', path: '/v1/images/generations', body: { model: 'slow-image', prompt: 'a red fox' } },
  { kind: 'embedding', path: '/v1/embeddings', body: { model: 'slow-embedding', input: 'one' } },
]) {
  test(`${kind}: a request cancelled while queued is not charged, not sent to a vendor and not logged`, async (t) => {
    const vendor = await startVendorSimulator();
    t.teardown(() => vendor.close());
    const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), workers: [] });
    const account = await stack.createAccount();
    const countReservations = (): Promise<number> =>
      stack.redis.hlen(redisKeys.reservations(shardOf(account.id)));
    const caller = new AbortController();
    const responsePromise = fetch(`${stack.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${account.apiKey}` },
      body: JSON.stringify(body),
      signal: caller.signal,
    });
    const isQueued = async (): Promise<boolean> => {
      const [ready, image, embedding] = await Promise.all([
        stack.redis.llen(redisKeys.readyQueue),
        stack.redis.llen('{bull}:image:wait'),
        stack.redis.llen('{bull}:embedding:wait'),
      ]);
      return ready + image + embedding === 1;
    };
    await waitFor('the request to be queued', isQueued);
    t.is(await countReservations(), 1);
    caller.abort();
    await t.throwsAsync(responsePromise, { any: true });
    if (kind === 'chat')
      await waitFor('the reservation to be released', async () => (await countReservations()) === 0);
    else
      await waitFor(
        'the request to be marked as cancelled',
        async () => (await stack.redis.zcard(redisKeys.cancelled)) === 1,
      );
    await stack.startWorker();
    await waitFor('the reservation to be released', async () => (await countReservations()) === 0);
    t.is((await stack.readAccount(account.id)).balanceNano, 100_000_000_000n);
    t.is(vendor.requests.counters.total, 0);
    const stream = redisKeys.ledgerStream(shardOf(account.id));
    await waitFor('the ledger to be processed', async () => (await stack.redis.xlen(stream)) === 0);
    t.is(await stack.mongo.db.collection('request_logs').countDocuments({}), 0);
  });
}
