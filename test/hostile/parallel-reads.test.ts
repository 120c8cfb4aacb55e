import { randomUUID } from 'node:crypto';
import test from 'ava';
import { LedgerStore } from '../../shared/ledger/ledger-store.ts';
import { callApi } from '../support/call-api.ts';
import { startStack, type TestStack } from '../support/stack.ts';
import { usageEvent } from '../support/billing.ts';
import { waitFor } from '../support/wait-for.ts';
import { readInParallel } from './attacks/parallel-reads.ts';

/** Account reads are not charged: hundreds of simultaneous reads must not block other callers. */

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ holdsMongo: true });
});
test.after.always(() => stack?.close());

/** Fills the request log of an account with full pages. */
async function fillLog(accountId: string): Promise<void> {
  const now = new Date();
  const rows = Array.from({ length: 300 }, (_, i) => {
    const _id = randomUUID();
    const { v: _v, requestId: _id2, at: _at, vendorCostNano: _cost, ...event } = usageEvent(accountId, _id);
    const money = { costNano: 1n, shortfallNano: 0n, free: false };
    return { ...event, ...money, _id, at: now, settledAt: now, ordinal: i + 1 };
  });
  await new LedgerStore(stack.mongo.db).insertLogs(rows);
}

test('if one account sends 500 simultaneous reads, those over the limit are rejected and others can chat, read and check health', async (t) => {
  const [attacker, other] = [await stack.createAccount(), await stack.createAccount()];
  await fillLog(attacker.id);
  const seen = new Set<number>();
  // Admitted reads are held at MongoDB, so that all of them are in flight together even if they arrive slowly.
  stack.mongoProxy!.hold(attacker.id);
  const attack = readInParallel({
    url: stack.url,
    apiKey: attacker.apiKey,
    onResponse: (status) => seen.add(status),
  });
  await waitFor('a rejection', () => seen.has(429));
  stack.mongoProxy!.release();
  const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'hi' }] };
  for (let i = 0; i < 5; i++) {
    t.is((await stack.post('/v1/chat/completions', other.apiKey, chat)).status, 200);
    t.is((await callApi(stack.url, other.apiKey, 'GET', '/users/request_logs')).status, 200);
    t.is((await fetch(`${stack.url}/v1/health`)).status, 200);
  }
  const { statuses, refused } = await attack;
  t.deepEqual(
    [...statuses.keys()].toSorted((a, b) => a - b),
    [200, 429],
  );
  t.is(statuses.get(200)! + statuses.get(429)!, 500);
  for (const { code, message, retryAfter } of refused) {
    t.is(code, 'rate_limit_exceeded');
    t.regex(message, /at most 128 requests that do not call a model/);
    t.true(Number(retryAfter) > 0);
  }
  // The limit no longer applies after the attack.
  t.is((await callApi(stack.url, attacker.apiKey, 'GET', '/users/request_logs')).status, 200);
});

test('after many reads that were cancelled immediately, the account can still read', async (t) => {
  const attacker = await stack.createAccount();
  await fillLog(attacker.id);
  const { id: _, ...account } = attacker;
  for (let i = 0; i < 3; i++) {
    const caller = new AbortController();
    const attack = readInParallel({ url: stack.url, ...account, count: 200, signal: caller.signal });
    setImmediate(() => caller.abort());
    await attack;
  }
  // The server may notice a moment later that the callers have left.
  const canRead = async (): Promise<boolean> => {
    const { statuses } = await readInParallel({ url: stack.url, ...account, count: 16 });
    return statuses.get(200) === 16;
  };
  t.true(await waitFor('the account to read', canRead));
});
