import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { loadCatalog, PaidLoad } from '../crash/paid-load.ts';
import { startTestRedis } from '../support/redis.ts';
import { useStack } from '../support/stack.ts';
import { startRedisProxy } from '../support/store-proxies.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkLedger, firstBalance } from './check-books.ts';

/** Expected outcomes during the outage. */
const outageOutcomes = new Set(['200', '503', 'cut', '502', '504']);
/** A connection on which a worker waits for work is closed after 14 s of silence. */
const servedWithinMs = 30_000;

test('if all Redis connections go silent without an error, chats, embeddings and images work again within 30 s, and no money is lost', async (t) => {
  t.timeout(180_000);
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  t.teardown(() => vendor.close());
  const redis = await startTestRedis();
  t.teardown(() => redis.stop());
  const { proxy, url } = await startRedisProxy(redis.url);
  t.teardown(() => proxy.close());
  const stack = await useStack(t, { catalog: loadCatalog(vendor.url), env: { REDIS_URL: url } });
  const accounts = await Promise.all(
    Array.from({ length: 4 }, () => stack.createAccount({ balance: firstBalance })),
  );
  const load = new PaidLoad({ urls: [stack.url], accounts });
  t.teardown(() => load.stop());
  load.start();
  await waitFor('callers to be served', () => load.receipts.length >= 60);

  const lostAtMs = performance.now();
  proxy.loseConnections();
  const kinds: readonly [path: string, body: object][] = [
    ['/v1/chat/completions', { model: 'chat', messages: [{ role: 'user', content: 'hello' }] }],
    ['/v1/embeddings', { model: 'embedding', input: 'one two three' }],
    ['/v1/images/generations', { model: 'image', prompt: 'a red fox' }],
  ];
  for (const [path, body] of kinds)
    await waitFor(
      `${path} to be served`,
      async () => {
        const response = await stack.post(path, accounts[0]!.apiKey, body);
        await response.arrayBuffer();
        return response.status === 200;
      },
      servedWithinMs - (performance.now() - lostAtMs),
    );
  t.log(`served again after ${Math.round(performance.now() - lostAtMs)} ms`);

  await load.stop();
  t.deepEqual(
    [...load.outcomes.keys()].filter((outcome) => !outageOutcomes.has(outcome)),
    [],
  );
  load.outcomes.clear();
  load.start();
  const expected = load.receipts.length + 60;
  await waitFor('callers to be served as before', () => load.receipts.length >= expected);
  await load.stop();
  t.deepEqual([...load.outcomes.keys()], ['200']);
  t.deepEqual(load.problems, []);
  t.deepEqual(await checkLedger(stack, accounts, load.receipts), []);
});
