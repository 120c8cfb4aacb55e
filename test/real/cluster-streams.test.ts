import test from 'ava';
import type { TestAccount } from '../support/stack.ts';
import { callChat, countOutcomes, describeEnd, isWhole, type ChatEnd } from './call-chat.ts';
import { checkBooks, firstBalance } from './check-books.ts';
import { numberOf, startClusterWorld, writeWords } from './cluster-world.ts';

/** Streams whose frames go through a healthy Redis Cluster, many at once. */

const fastCalls = numberOf(200, 1_000);
const fastAtOnce = 40;
const slowStreams = numberOf(60, 300);
const accountCount = 12;

let world: Awaited<ReturnType<typeof startClusterWorld>>;
test.before(async () => {
  world = await startClusterWorld();
});
test.after.always(() => world.close());

const createAccounts = (): Promise<TestAccount[]> =>
  Promise.all(
    Array.from({ length: accountCount }, () => world.stack.createAccount({ balance: firstBalance })),
  );

/** What is wrong with how calls ended that nothing disturbed. */
function findFaults(ends: readonly ChatEnd[], contents: readonly string[]): string[] {
  return ends.flatMap((end, i) => (isWhole(end, contents[i]!) ? [] : [describeEnd(end, i)]));
}

const receiptsOf = (ends: readonly ChatEnd[]) => ends.flatMap(({ receipt }) => receipt ?? []);

test.serial(
  `of ${slowStreams} slow streams at once none loses a word, and each is charged what its caller was told`,
  async (t) => {
    t.timeout(180_000);
    const accounts = await createAccounts();
    const contents = Array.from({ length: slowStreams }, (_, i) => writeWords(`s${i}`, 80));
    const ends = await Promise.all(
      contents.map((content, i) =>
        callChat(world.stack.url, accounts[i % accountCount]!, 'drip-20', content),
      ),
    );
    t.deepEqual(countOutcomes(ends), { ok: slowStreams });
    t.deepEqual(findFaults(ends, contents), []);
    t.deepEqual(await checkBooks(world.stack, accounts, receiptsOf(ends)), []);
  },
);

test.serial(
  `of ${fastCalls} fast calls, streamed and whole, none loses a word, and each is charged what its caller was told`,
  async (t) => {
    t.timeout(180_000);
    const accounts = await createAccounts();
    const contents = Array.from({ length: fastCalls }, (_, i) => writeWords(`f${i}`, 20));
    const ends: ChatEnd[] = [];
    let next = 0;
    const callOn = async (): Promise<void> => {
      while (next < fastCalls) {
        const i = next++;
        const account = accounts[i % accountCount]!;
        ends[i] = await callChat(world.stack.url, account, 'chat', contents[i]!, { stream: i % 2 === 0 });
      }
    };
    await Promise.all(Array.from({ length: fastAtOnce }, callOn));
    t.deepEqual(countOutcomes(ends), { ok: fastCalls });
    t.deepEqual(findFaults(ends, contents), []);
    t.deepEqual(await checkBooks(world.stack, accounts, receiptsOf(ends)), []);
  },
);
