import test from 'ava';
import { loadCatalog, PaidLoad } from '../crash/paid-load.ts';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkLedger, firstBalance } from './check-books.ts';
import { callChat } from './call-chat.ts';
import { chooseCount } from './cluster-world.ts';

/** Enough accounts for each master to have some. */
const accountCount = 16;
const receiptsPerPhase = 60;
const deaths = chooseCount(1, 5);
/** Expected outcomes while a master is down. */
const outageOutcomes = new Set(['200', '503', 'cut', '502', '504']);

test('if a master is killed or replaced as planned under load, there are errors only for a moment, and no money is lost', async (t) => {
  t.timeout(60_000 + deaths * 60_000);
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: loadCatalog(vendor.url), cluster: {} });
  const cluster = stack.cluster!;
  const accounts = await Promise.all(
    Array.from({ length: accountCount }, () => stack.createAccount({ balance: firstBalance })),
  );
  const load = new PaidLoad({ urls: [stack.url], accounts });
  t.teardown(() => load.stop());
  const waitForReceipts = (): Promise<unknown> => {
    const expected = load.receipts.length + receiptsPerPhase;
    return waitFor('callers to be served', () => load.receipts.length >= expected);
  };
  for (let death = 0; death < deaths; death++) {
    load.start();
    await waitForReceipts();
    const before = await cluster.masters();
    const port = before[death % before.length]!;
    await cluster.kill(port);
    await cluster.waitForFailover();
    const after = await cluster.masters();
    t.is(after.length, before.length);
    t.false(after.includes(port));
    // A client learns of the new master only when it sends a command for one of its slots.
    for (const account of accounts)
      await waitFor('every account to be served', async () => {
        return (await callChat(stack.url, account, 'chat', 'hello')).outcome === 'ok';
      });
    await load.stop();
    load.outcomes.clear();
    load.start();
    await waitForReceipts();
    await load.stop();
    t.deepEqual([...load.outcomes.keys()], ['200'], 'the promoted replica serves every call');
    await cluster.restart(port);
  }
  // Planned failovers, in which connections are not interrupted, have the same result.
  load.start();
  await waitForReceipts();
  for (const port of await cluster.masters()) await cluster.handOver(port);
  await load.stop();
  for (const account of accounts)
    await waitFor('every account to be served after planned failovers', async () => {
      return (await callChat(stack.url, account, 'chat', 'hello')).outcome === 'ok';
    });
  t.deepEqual(load.problems, []);
  t.deepEqual(
    [...load.outcomes.keys()].filter((outcome) => !outageOutcomes.has(outcome)),
    [],
  );
  t.deepEqual(await checkLedger(stack, accounts, load.receipts), []);
});
