import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import type { TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { checkBalances, checkReceipts, verifyLedger, waitUntilQuiet } from './audit.ts';
import { checkJobs, waitForJobs } from './job-audit.ts';
import { JobLoad } from './job-load.ts';
import { loadCatalog, PaidLoad } from './paid-load.ts';
import { useProcessStack, type ProcessStack } from './process-stack.ts';
import { createSeededRandom } from './seeded-random.ts';

/** More rounds take longer and find more problems. */
const rounds = process.env['TEST_LONG'] === 'on' ? 50 : 16;
/** How long the load runs before each death, plus a random part. */
const workMs = 250;
/** After this many rounds the load pauses until everything is settled, and everything is audited. */
const roundsBetweenAudits = rounds / 2;
/** Reservations of requests that died with their processes are released within this time. */
const releaseTimeoutMs = 45_000;
/** The long version takes four minutes on an idle two-core machine, and longer on a busy one. */
const testTimeoutMs = 12 * 60_000;

/** Rich accounts, accounts that can barely pay, and accounts whose free requests run out during the test. */
const wallets = [
  { balance: '100000', freeRequests: 0 },
  { balance: '100000', freeRequests: 0 },
  { balance: '100000', freeRequests: 5_000 },
  { balance: '100000', freeRequests: 200 },
  { balance: '4', freeRequests: 0 },
  { balance: '3', freeRequests: 20 },
  { balance: '2', freeRequests: 0 },
  { balance: '1', freeRequests: 5 },
];
const firstPoorIndex = 4;
const topUp = '0.5';

/** Credits an account once, and retries until the refill is confirmed. @returns nano-roubles */
async function refill(
  { redis, hotAccounts }: ProcessStack,
  accountId: string,
  refillId: string,
  { balance, freeRequests = 0 }: { balance: string; freeRequests?: number },
): Promise<bigint> {
  const amountNano = parseRub(balance)!;
  const event = createRefillEvent(refillId, accountId, 'test');
  await waitFor(`the refill ${refillId}`, async () => {
    try {
      await hotAccounts.load(accountId);
      await runRefill(redis, { amountNano, freeRequests, event });
      return true;
    } catch {
      return false;
    }
  });
  return amountNano;
}

test('if any process is killed under load, every receipt and durable job is charged exactly once, no job is lost, and all balances agree', async (t) => {
  t.timeout(testTimeoutMs);
  const random = createSeededRandom(process.env['TEST_SEED']);
  t.log(`TEST_SEED=${random.seed}`);
  const vendor = await startVendorSimulator({ logCapacity: 0 });
  t.teardown(() => vendor.close());
  const stack = await useProcessStack(t, loadCatalog(vendor.url));
  const addedNano = new Map<string, bigint>();
  const accounts: TestAccount[] = [];
  for (const wallet of wallets) {
    const account = await stack.accounts.create({ userType: 'default', requestsPerMinute: 1_000_000 });
    accounts.push(account);
    addedNano.set(account.id, await refill(stack, account.id, `first-${account.id}`, wallet));
  }
  const load = new PaidLoad({ urls: stack.urls, accounts, pauseMs: 0 });
  const jobLoad = new JobLoad({ urls: stack.urls, accounts, pauseMs: 0 });
  const startAll = (): void => {
    load.start();
    jobLoad.start();
  };
  const stopAll = async (): Promise<void> => {
    await Promise.all([load.stop(), jobLoad.stop()]);
  };
  t.teardown(stopAll);
  startAll();
  let checked = 0;

  for (let round = 1; round <= rounds; round++) {
    const startedAtMs = performance.now();
    const receiptsBefore = load.receipts.length;
    const { id } = random.choose(accounts.slice(firstPoorIndex));
    addedNano.set(id, addedNano.get(id)! + (await refill(stack, id, `round-${round}`, { balance: topUp })));
    await delay(workMs + random.next() * workMs);
    const victim = random.choose(stack.victims);
    await victim.kill();
    // Receipts from before this round have had time to reach MongoDB, even if another process reads the ledger now.
    const receipts = load.receipts.slice(checked, receiptsBefore);
    // The whole ledger is verified under load, while the killed process comes back. Any damage done after that
    // persists, and is found in the next round or by the final audit.
    const [problems, differences] = await Promise.all([
      checkReceipts(stack, receipts),
      verifyLedger(stack, releaseTimeoutMs),
      victim.restart(),
    ]);
    const event = `round ${round}: ${victim.name} killed`;
    t.deepEqual(problems, [], event);
    t.deepEqual(differences, [], event);
    checked = receiptsBefore;
    if (round % roundsBetweenAudits === 0) {
      await stopAll();
      // Jobs and reservations of dead processes wait for leases to expire. Both waits run concurrently.
      await waitForJobs(stack, accounts, releaseTimeoutMs);
      await waitUntilQuiet(stack, releaseTimeoutMs);
      t.deepEqual(await checkJobs(stack, accounts, jobLoad.tickets), [], event);
      t.deepEqual(await checkReceipts(stack, load.receipts.slice(checked)), [], event);
      checked = load.receipts.length;
      t.deepEqual(await checkBalances(stack, addedNano), [], event);
      t.deepEqual(await verifyLedger(stack, 0), [], event);
      if (round < rounds) startAll();
    }
    const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
    t.log(`${event}, ${load.receipts.length - receiptsBefore} receipts in ${seconds} s`);
  }
  await stopAll();
  t.deepEqual([...load.problems, ...jobLoad.problems], []);
  for (const { outcomes } of [load, jobLoad])
    t.log([...outcomes].map(([outcome, count]) => `${outcome}: ${count}`).join(', '));
  t.true(load.receipts.some((receipt) => receipt.free));
  t.true((load.outcomes.get('402') ?? 0) > 0);
  t.true(jobLoad.tickets.some(({ end }) => end?.status === 'succeeded'));
});
