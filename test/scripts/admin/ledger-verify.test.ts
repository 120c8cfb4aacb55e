import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import type { Difference } from '../../../shared/admin/verify/check-account.ts';
import { verifyLedger } from '../../../shared/admin/verify/verify-ledger.ts';
import { nameDay } from '../../../shared/accounts/budget-periods.ts';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { hashSecret } from '../../../shared/accounts/credentials.ts';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { ReservationStore } from '../../../shared/money/reservation-store.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { PriceStore } from '../../../shared/ledger/price-store.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { readAdmin, runAdmin } from '../../support/admin.ts';
import { admission } from '../../support/billing.ts';
import { changeSettings } from '../../support/change-settings.ts';
import { createJob } from '../../support/jobs.ts';
import { waitForNoReservation } from '../../support/observe.ts';
import { useStack, type TestAccount, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

interface Verification {
  readonly accounts: number;
  readonly entries: number;
  readonly money?: {
    readonly added: string;
    readonly taken_back: string;
    readonly spent: string;
    readonly balance: string;
  };
  readonly differences: readonly { account: string; check: string; request_id: string | null }[];
  readonly released: readonly { request_id: string; account: string }[];
}

const chat = { model: 'demo-echo', messages: [{ role: 'user', content: 'one two three' }] };

async function sendChat(stack: TestStack, account: TestAccount): Promise<string> {
  const response = await stack.post('/v1/chat/completions', account.apiKey, chat);
  if (response.status !== 200) throw new Error(await response.text());
  await response.arrayBuffer();
  return response.headers.get('x-request-id')!;
}

/** Waits until all settled requests are in MongoDB. */
async function waitUntilSettled(stack: TestStack): Promise<void> {
  await waitForNoReservation(stack);
  for (let shard = 0; shard < shardCount; shard++) {
    await waitFor(
      `stream ${shard} to be idle`,
      async () => (await stack.redis.xlen(redisKeys.ledgerStream(shard))) === 0,
    );
  }
}

const verify = (stack: TestStack, ...args: string[]): Promise<Verification> =>
  readAdmin<Verification>(stack.env, 'ledger', 'verify', ...args);

/** Runs the check in this process, as the command does. */
async function findDifferences({ redis, mongo, config }: TestStack, account: string): Promise<Difference[]> {
  const dependencies = {
    redis,
    accounts: new AccountStore(mongo.db, config),
    ledger: new LedgerStore(mongo.db),
    prices: new PriceStore(mongo.db),
    reservations: new ReservationStore(redis),
  };
  const options = { account, releaseOrphans: false, onProgress: () => undefined };
  return (await verifyLedger(dependencies, options)).differences;
}

test('a healthy stack has no differences, idle or under load', async (t) => {
  const stack = await useStack(t);
  const accounts = await Promise.all(Array.from({ length: 4 }, () => stack.createAccount()));
  const stopLoad = new AbortController();
  let sent = 0;
  const load = Promise.all(
    accounts.map(async (account) => {
      while (!stopLoad.signal.aborted) {
        await sendChat(stack, account);
        sent += 1;
      }
    }),
  );
  for (let i = 0; i < 3; i++) {
    const result = await runAdmin(stack.env, 'ledger', 'verify', '--json');
    t.is(result.exitCode, 0, result.stdout);
  }
  stopLoad.abort();
  await load;
  await waitUntilSettled(stack);
  t.deepEqual(await verify(stack), { accounts: 4, entries: sent + 4, differences: [], released: [] });
  const one = await verify(stack, '--account', accounts[0]!.apiKey);
  t.is(one.accounts, 1);
  t.true(one.entries < sent);
  const { balance } = await readAdmin<{ balance: number }>(stack.env, 'account', 'show', accounts[0]!.apiKey);
  const { added, spent, balance: summed } = one.money!;
  t.true(Number(spent) > 0);
  t.deepEqual([Number(summed), Number(added) - Number(spent)], [balance, balance]);
});

test('every inconsistency is reported and nothing is repaired', async (t) => {
  const stack = await useStack(t);
  const { db } = stack.mongo;
  const accounts = db.collection<{ _id: string }>('accounts');
  const logs = db.collection<{ _id: string }>('request_logs');
  const ledger = db.collection<{ _id: string }>('ledger');
  const corruptions: Record<
    string,
    (t: ExecutionContext, account: TestAccount, requestId: string) => Promise<unknown>
  > = {
    'balance in MongoDB equals refills minus charges': (_, { id }) =>
      accounts.updateOne({ _id: id }, { $inc: { balanceNano: 1n } }),
    'refills in MongoDB': (_, { id }) => accounts.updateOne({ _id: id }, { $inc: { totalAddedNano: 1n } }),
    'free requests in MongoDB': (_, { id }) => accounts.updateOne({ _id: id }, { $inc: { freeRequests: 1 } }),
    'charges in MongoDB': (_, __, requestId) => ledger.deleteOne({ _id: requestId }),
    'balance in Redis equals that in MongoDB plus pending entries': (_, { id }) =>
      stack.redis.hincrby(redisKeys.account(id), 'bal', 1),
    'reserved by requests and jobs in progress': (_, { id }) =>
      stack.redis.hincrby(redisKeys.account(id), 'res', 1),
    'free requests reserved': (_, { id }) => stack.redis.hincrby(redisKeys.account(id), 'fres', 1),
    'cost follows from price and usage': (_, __, requestId) =>
      logs.updateOne({ _id: requestId }, { $set: { completionTokens: 1_000_000 } }),
    'the price is stored': (_, __, requestId) =>
      logs.updateOne({ _id: requestId }, { $set: { priceVersion: 'never' } }),
    'the ledger matches the log': (_, __, requestId) =>
      ledger.updateOne({ _id: requestId }, { $inc: { amountNano: -5n } }),
  };
  for (const [check, corrupt] of Object.entries(corruptions)) {
    const account = await stack.createAccount();
    const requestId = await sendChat(stack, account);
    await waitUntilSettled(stack);
    t.deepEqual(await findDifferences(stack, account.id), []);
    await corrupt(t, account, requestId);
    const found = await findDifferences(stack, account.id);
    t.true(
      found.some((one) => one.check === check && one.account === account.id),
      `${check}: ${JSON.stringify(found)}`,
    );
    t.deepEqual(await findDifferences(stack, account.id), found);
  }
  const { exitCode, stdout } = await runAdmin(stack.env, 'ledger', 'verify', '--json');
  t.is(exitCode, 1);
  const reported = new Set((JSON.parse(stdout) as Verification).differences.map((one) => one.check));
  t.deepEqual(
    Object.keys(corruptions).filter((check) => !reported.has(check)),
    [],
  );
});

test('if the stream contains an entry twice, this is reported', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount();
  const stream = redisKeys.ledgerStream(shardOf(account.id));
  const [[, fields]] = (await stack.redis.xrange(stream, '-', '+')) as [[string, string[]]];
  await stack.redis.xadd(stream, '*', ...fields);
  const { differences } = await verify(stack);
  t.true(differences.some((one) => one.check === 'a request is in the ledger once'));
});

test('an orphaned reservation is reported, and is released by --release-orphans or by a running worker', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount({ balance: '10' });
  const reserve = async (ageMs: number): Promise<string> => {
    const requestId = randomUUID();
    const value = `${account.id} 1000000000 0 ${Date.now() - ageMs} <2000000000`;
    await stack.redis.hset(redisKeys.reservations(shardOf(account.id)), requestId, value);
    await stack.redis.hincrby(redisKeys.account(account.id), 'res', 1_000_000_000);
    return requestId;
  };
  const held = redisKeys.heldRequests(shardOf(account.id));
  const withHeartbeat = await reserve(120_000);
  await stack.redis.zadd(held, Date.now() + 600_000, withHeartbeat);
  t.deepEqual((await verify(stack)).differences, []);
  const old = await reserve(120_000);
  t.like((await verify(stack)).differences, [
    { check: 'no reservation outlives its request', request_id: old },
  ]);
  const { released, differences } = await verify(stack, '--release-orphans');
  t.like(released, [{ request_id: old, account: account.id }]);
  t.deepEqual(differences, []);
  t.is((await stack.readAccount(account.id)).reservedNano, 1_000_000_000n);

  await stack.redis.zrem(held, withHeartbeat);
  await stack.startWorker();
  await waitForNoReservation(stack);
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
  t.is(await stack.redis.hexists(redisKeys.orphans(shardOf(account.id)), withHeartbeat), 1);
});

test('what budgets count is compared with the ledger', async (t) => {
  const stack = await useStack(t);
  const account = await stack.createAccount();
  await sendChat(stack, account);
  await changeSettings(stack, account.id, { budget: { amountNano: 9_000_000_000n, period: 'monthly' } });
  await sendChat(stack, account);
  await waitUntilSettled(stack);
  t.deepEqual(await findDifferences(stack, account.id), []);
  const key = redisKeys.account(account.id);
  const [amount, period, start, spent, reserved] = (await stack.redis.hget(key, 'bud'))!.split(' ');
  t.true(Number(spent) > 0);
  await stack.redis.hset(key, 'bud', [amount, period, start, Number(spent) + 1, reserved].join(' '));
  const differences = await findDifferences(stack, account.id);
  t.deepEqual(
    differences.map(({ check }) => check),
    ['spent of the monthly budget'],
  );
});

test('what budgets, jobs and lines of batches have reserved is compared with the requests in progress', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount();
  await changeSettings(stack, account.id, { budget: { amountNano: 9_000_000_000n, period: 'monthly' } });
  await createJob(stack, account, '/v1/chat/completions', chat);
  const request = admission(account.id, { keyHash: hashSecret(account.apiKey), fixedNano: 1_000n });
  t.is((await runAdmission(stack.redis, request)).outcome, 'ok');
  const heartbeats = redisKeys.heldRequests(shardOf(account.id));
  await stack.redis.zadd(heartbeats, Date.now() + 600_000, request.requestId);
  t.deepEqual(await findDifferences(stack, account.id), []);
  const key = redisKeys.account(account.id);
  const held = redisKeys.jobsHeld(account.id);
  const [amount, period, start, spent, reserved] = (await stack.redis.hget(key, 'bud'))!.split(' ');
  t.true(Number(reserved) > 0);
  await stack.redis.hset(key, 'bud', [amount, period, start, spent, Number(reserved) + 1].join(' '));
  await stack.redis.hset(held, 'lines', 5);
  const find = async () => (await findDifferences(stack, account.id)).map(({ check }) => check);
  t.deepEqual(await find(), ['reserved by lines of batches', 'reserved of the monthly budget']);
  await stack.redis.hdel(held, 'lines');
  const [day] = (await stack.redis.hkeys(held)).filter((field) => field.startsWith('day:'));
  await stack.redis.hincrby(held, day!, 1);
  t.deepEqual(await find(), [`reserved by durable jobs of ${nameDay(Number(day!.slice('day:'.length)))}`]);
});
