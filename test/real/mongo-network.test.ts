import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { callChat, countOutcomes } from './call-chat.ts';
import { checkLedger, firstBalance } from './check-books.ts';
import { clusterCatalog, writeWords } from './cluster-world.ts';
import { waitFor } from '../support/wait-for.ts';

/** MongoDB behind a network that delays, interrupts or blocks traffic. Calls of an account in Redis do not need MongoDB. */

const callCount = 40;

let vendor: VendorSimulator;
let stack: TestStack;
test.before(async () => {
  vendor = await startVendorSimulator({ logCapacity: 0 });
  stack = await startStack({ catalog: clusterCatalog(vendor.url), holdsMongo: true });
});
test.afterEach(() => stack.mongoProxy!.release());
test.after.always(async () => {
  await stack?.close();
  await vendor?.close();
});

const faults: Record<string, () => void> = {
  'replies late': () => stack.mongoProxy!.delay(100),
  'cuts every connection': () => stack.mongoProxy!.cut(),
  hangs: () => stack.mongoProxy!.hang(),
};

for (const [fault, begin] of Object.entries(faults)) {
  test.serial(
    `while MongoDB ${fault}, accounts in Redis are served, and every charge is in the ledger afterwards`,
    async (t) => {
      t.timeout(120_000);
      const account: TestAccount = await stack.createAccount({ balance: firstBalance });
      const first = await waitFor('Redis to know the key', async () => {
        const result = await callChat(stack.url, account, 'chat', 'hello');
        return result.outcome === 'ok' && result;
      });
      begin();
      const contents = Array.from({ length: callCount }, (_, i) => writeWords(`m${i}`, 20));
      const results = await Promise.all(
        contents.map((content, i) => callChat(stack.url, account, i % 2 === 0 ? 'chat' : 'drip-20', content)),
      );
      t.deepEqual(countOutcomes([first, ...results]), { ok: callCount + 1 });
      stack.mongoProxy!.release();
      const receipts = [first, ...results].flatMap(({ receipt }) => receipt ?? []);
      t.deepEqual(await checkLedger(stack, [account], receipts), []);
    },
  );
}
