import test from 'ava';
import { waitFor } from '../support/wait-for.ts';
import { callChat, countOutcomes, describeEnd, isWhole, type ChatEnd } from './call-chat.ts';
import { checkBooks, firstBalance } from './check-books.ts';
import { useClusterWorld, writeWords } from './cluster-world.ts';

/** What a Redis Cluster loses while callers wait: connections that are subscribed, and a master. */

const streams = 30;
/** Eight seconds of words. */
const contents = Array.from({ length: streams }, (_, i) => writeWords(`s${i}`, 80));
/** From the loss on: what still works ends within its eight seconds, what was lost must be noticed before. */
const endsWithinMs = 20_000;
/** What callers may be told of a loss. */
const clearErrors = ['service_unavailable', 'upstream_error'];

const faultsOf = (ends: readonly ChatEnd[]): string[] =>
  ends.flatMap((end, i) =>
    isWhole(end, contents[i]!) || clearErrors.includes(end.outcome) ? [] : [describeEnd(end, i)],
  );

test('when every subscription is cut, every caller who waits has an answer or a clear error within seconds, and later calls work', async (t) => {
  t.timeout(120_000);
  const { stack, cluster, vendor } = await useClusterWorld(t);
  const account = await stack.createAccount({ balance: firstBalance });
  const calls = [
    ...contents.map((content) => callChat(stack.url, account, 'drip-100', content)),
    ...contents.map((content) => callChat(stack.url, account, 'slow-chat', content, { stream: false })),
  ];
  await waitFor('the vendor to be asked', () => vendor.requests.counters.total >= calls.length);
  const cutAtMs = performance.now();
  t.true((await cluster.killSubscribers()) > 0);
  const ends = await Promise.all(calls);
  t.log(countOutcomes(ends));
  t.true(performance.now() - cutAtMs < endsWithinMs);
  t.deepEqual([...faultsOf(ends.slice(0, streams)), ...faultsOf(ends.slice(streams))], []);

  await waitFor(
    'a call to work',
    async () => (await callChat(stack.url, account, 'chat', 'hello')).outcome === 'ok',
  );
  const later = await Promise.all(
    contents.map((content) => callChat(stack.url, account, 'drip-20', content)),
  );
  t.deepEqual(countOutcomes(later), { ok: streams });
  const receipts = [...ends, ...later].flatMap(({ receipt }) => receipt ?? []);
  t.deepEqual(await checkBooks(stack, [account], receipts), []);
});
