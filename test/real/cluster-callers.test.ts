import test from 'ava';
import { startChat } from '../support/disconnecting-caller.ts';
import { findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { postJson } from '../support/post-json.ts';
import { waitFor } from '../support/wait-for.ts';
import { startRole } from '../support/worker-process.ts';
import { checkLedger, firstBalance } from './check-books.ts';
import { startClusterStack, writeWords } from './cluster-world.ts';

/** Callers that disconnect, and api processes that die, while streams run through a Redis Cluster. */

const streams = 12;
/** A minute of words: if a call were not cancelled, the test would time out before it ends. */
const content = writeWords('w', 600);

let setup: Awaited<ReturnType<typeof startClusterStack>>;
test.before(async () => {
  setup = await startClusterStack();
});
test.after.always(() => setup.close());

const waitForAborted = (count: number): Promise<true> =>
  waitFor(
    () => `${count} vendor calls to be aborted, so far ${setup.vendor.requests.counters.aborted}`,
    () => setup.vendor.requests.counters.aborted === count,
    30_000,
  ).then(() => true);

test.serial(
  'if callers disconnect, their vendor calls are cancelled, and they are charged for what was generated until then',
  async (t) => {
    const { stack, vendor } = setup;
    vendor.requests.clear();
    const account = await stack.createAccount({ balance: firstBalance });
    const body = { model: 'drip-100', stream: true, messages: [{ role: 'user', content }] };
    const callers = Array.from({ length: streams }, () => startChat(stack, account.apiKey, body));
    await Promise.all(callers.map((caller) => caller.readUntil('w-3')));
    for (const caller of callers) caller.leave();
    t.true(await waitForAborted(streams));
    await waitForNoReservation(stack, account.id);
    let sum = 0n;
    for (const caller of callers) {
      const { completionTokens, costNano } = await findRow(stack, caller.requestId());
      t.true(completionTokens > 0 && completionTokens < 600, `${completionTokens} tokens were charged`);
      sum += costNano;
    }
    t.is(await readAmountCharged(stack, account.id, firstBalance), sum);
    t.deepEqual(await checkLedger(stack, [account], []), []);
  },
);

test.serial(
  'if an api process is killed, its streams end, and their callers are charged for what was generated until then',
  async (t) => {
    const { stack, vendor } = setup;
    vendor.requests.clear();
    const account = await stack.createAccount({ balance: firstBalance });
    const api = await startRole(t, 'api', stack.env);
    const responses = await Promise.all(
      Array.from({ length: streams }, () =>
        postJson(`${String(api.readyLine['url'])}/v1/chat/completions`, account.apiKey, {
          model: 'drip-100',
          stream: true,
          messages: [{ role: 'user', content }],
        }),
      ),
    );
    const readers = responses.map((response) => response.body!.getReader());
    await Promise.all(readers.map((reader) => reader.read()));
    await api.kill();
    for (const reader of readers) {
      await t.throwsAsync(async () => {
        while (!(await reader.read()).done);
      });
    }
    t.true(await waitForAborted(streams));
    await waitForNoReservation(stack, account.id);
    let sum = 0n;
    for (const response of responses) {
      const { completionTokens, costNano } = await findRow(stack, response.headers.get('x-request-id')!);
      t.true(completionTokens < 600, `${completionTokens} tokens were charged`);
      sum += costNano;
    }
    t.is(await readAmountCharged(stack, account.id, firstBalance), sum);
    t.deepEqual(await checkLedger(stack, [account], []), []);
  },
);
