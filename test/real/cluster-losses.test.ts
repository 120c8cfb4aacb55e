import test from 'ava';
import { waitFor } from '../support/wait-for.ts';
import { callChat, countOutcomes, describeResult, isComplete, type ChatResult } from './call-chat.ts';
import { checkLedger, firstBalance } from './check-books.ts';
import { useClusterStack, writeWords } from './cluster-world.ts';

/** A Redis Cluster loses its subscriptions or a master while callers wait. */

const streams = 30;
/** Eight seconds of words. */
const contents = Array.from({ length: streams }, (_, i) => writeWords(`s${i}`, 80));
/**
 * All calls must end within this time after a loss: undisturbed streams end within their eight seconds, and a loss must
 * be noticed in time.
 */
const endsWithinMs = 20_000;
/** The errors that callers may get because of a loss. */
const clearErrors = ['service_unavailable', 'upstream_error'];

const findProblems = (results: readonly ChatResult[]): string[] =>
  results.flatMap((result, i) =>
    isComplete(result, contents[i]!) || clearErrors.includes(result.outcome)
      ? []
      : [describeResult(result, i)],
  );

test('if all subscriptions are cut, each waiting caller gets a response or a clear error within seconds, and later calls work', async (t) => {
  t.timeout(120_000);
  const { stack, cluster, vendor } = await useClusterStack(t);
  const account = await stack.createAccount({ balance: firstBalance });
  const calls = [
    ...contents.map((content) => callChat(stack.url, account, 'drip-100', content)),
    ...contents.map((content) => callChat(stack.url, account, 'slow-chat', content, { stream: false })),
  ];
  await waitFor('the vendor to be called', () => vendor.requests.counters.total >= calls.length);
  const cutAtMs = performance.now();
  t.true((await cluster.killSubscribers()) > 0);
  const results = await Promise.all(calls);
  t.log(countOutcomes(results));
  t.true(performance.now() - cutAtMs < endsWithinMs);
  t.deepEqual([...findProblems(results.slice(0, streams)), ...findProblems(results.slice(streams))], []);

  await waitFor(
    'a call to work',
    async () => (await callChat(stack.url, account, 'chat', 'hello')).outcome === 'ok',
  );
  const later = await Promise.all(
    contents.map((content) => callChat(stack.url, account, 'drip-20', content)),
  );
  t.deepEqual(countOutcomes(later), { ok: streams });
  const receipts = [...results, ...later].flatMap(({ receipt }) => receipt ?? []);
  t.deepEqual(await checkLedger(stack, [account], receipts), []);
});
