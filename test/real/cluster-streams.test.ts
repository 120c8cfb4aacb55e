import test from 'ava';
import type { TestAccount } from '../support/stack.ts';
import { callChat, countOutcomes, describeResult, isComplete, type ChatResult } from './call-chat.ts';
import { checkLedger, firstBalance } from './check-books.ts';
import { chooseCount, startClusterStack, writeWords } from './cluster-world.ts';

/** Many concurrent streams through a healthy Redis Cluster. */

const fastCalls = chooseCount(200, 1_000);
const fastConcurrency = 40;
const slowStreams = chooseCount(60, 300);
const accountCount = 12;

let setup: Awaited<ReturnType<typeof startClusterStack>>;
test.before(async () => {
  setup = await startClusterStack();
});
test.after.always(() => setup.close());

const createAccounts = (): Promise<TestAccount[]> =>
  Promise.all(
    Array.from({ length: accountCount }, () => setup.stack.createAccount({ balance: firstBalance })),
  );

/** Describes calls that are not complete. */
function findProblems(results: readonly ChatResult[], contents: readonly string[]): string[] {
  return results.flatMap((result, i) =>
    isComplete(result, contents[i]!) ? [] : [describeResult(result, i)],
  );
}

const receiptsOf = (results: readonly ChatResult[]) => results.flatMap(({ receipt }) => receipt ?? []);

test.serial(
  `all ${slowStreams} concurrent slow streams are complete, and each charge equals the cost in the response`,
  async (t) => {
    t.timeout(180_000);
    const accounts = await createAccounts();
    const contents = Array.from({ length: slowStreams }, (_, i) => writeWords(`s${i}`, 80));
    const results = await Promise.all(
      contents.map((content, i) =>
        callChat(setup.stack.url, accounts[i % accountCount]!, 'drip-20', content),
      ),
    );
    t.deepEqual(countOutcomes(results), { ok: slowStreams });
    t.deepEqual(findProblems(results, contents), []);
    t.deepEqual(await checkLedger(setup.stack, accounts, receiptsOf(results)), []);
  },
);

test.serial(
  `all ${fastCalls} fast calls, streamed or not, are complete, and each charge equals the cost in the response`,
  async (t) => {
    t.timeout(180_000);
    const accounts = await createAccounts();
    const contents = Array.from({ length: fastCalls }, (_, i) => writeWords(`f${i}`, 20));
    const results: ChatResult[] = [];
    let next = 0;
    const callInLoop = async (): Promise<void> => {
      while (next < fastCalls) {
        const i = next++;
        const account = accounts[i % accountCount]!;
        results[i] = await callChat(setup.stack.url, account, 'chat', contents[i]!, { stream: i % 2 === 0 });
      }
    };
    await Promise.all(Array.from({ length: fastConcurrency }, callInLoop));
    t.deepEqual(countOutcomes(results), { ok: fastCalls });
    t.deepEqual(findProblems(results, contents), []);
    t.deepEqual(await checkLedger(setup.stack, accounts, receiptsOf(results)), []);
  },
);
