import test from 'ava';
import { RefillCodeStore } from '../../shared/accounts/refill-code-store.ts';
import { runRefill } from '../../shared/accounts/refill-script.ts';
import type { RefillLogPage, UserBalance } from '../../api/contract/users.ts';
import { createRefillEvent } from '../../shared/ledger/usage-event.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { callApi } from '../support/call-api.ts';
import { useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** The next request after a redemption shows it in the refill log, even before its ledger entry is processed. */

const createCodes = (stack: TestStack, count: number): Promise<string[]> =>
  new RefillCodeStore(stack.mongo.db).create(count, {
    balanceNano: parseRub('12.5')!,
    freeRequests: 3,
    expiresAt: null,
  });

const redeem = (stack: TestStack, { apiKey }: TestAccount, code: string) =>
  callApi(stack.url, apiKey, 'POST', '/users/redeem', { code });

async function readLog(stack: TestStack, { apiKey }: TestAccount, query = ''): Promise<RefillLogPage> {
  return (await callApi<RefillLogPage>(stack.url, apiKey, 'GET', `/users/refill_logs${query}`)).body;
}

const codesOf = ({ items }: RefillLogPage): string[] => items.map((item) => item.refill_code_redeemed);

const readBalance = async (stack: TestStack, { apiKey }: TestAccount): Promise<number | undefined> =>
  (await callApi<UserBalance>(stack.url, apiKey, 'GET', '/users/profile')).body.balance;

test('a redeemed code is in the log even before the ledger is processed, and keeps its position afterwards', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount({ balance: '0' });
  const codes = await createCodes(stack, 5);
  for (const [i, code] of codes.entries()) {
    t.is((await redeem(stack, account, code)).status, 200);
    const page = await readLog(stack, account);
    t.is(page.total_count, i + 1);
    t.like(page.items[0], { refill_code_redeemed: code, balance_added: '12.5', free_requests_added: 3 });
  }
  const newestFirst = codes.toReversed();
  t.deepEqual(codesOf(await readLog(stack, account)), newestFirst);
  const third = await readLog(stack, account, '?page=2&page_size=2');
  t.like(third, { total_count: 5, total_pages: 3, page: 2 });
  t.deepEqual(codesOf(third), newestFirst.slice(2, 4));

  const before = await readLog(stack, account);
  await stack.startWorker();
  const stream = redisKeys.ledgerStream(shardOf(account.id));
  await waitFor('the ledger to be processed', async () => (await stack.redis.xlen(stream)) === 0);
  t.deepEqual(await readLog(stack, account), before);
});

test('each redeemed code is in the log exactly once, even if the log is read while the ledger is being processed', async (t) => {
  const stack = await useStack(t);
  const account = await stack.createAccount({ balance: '0' });
  for (const [i, code] of (await createCodes(stack, 25)).entries()) {
    t.is((await redeem(stack, account, code)).status, 200);
    const page = await readLog(stack, account, '?page_size=100');
    t.is(codesOf(page)[0], code);
    t.is(page.items.length, i + 1);
    t.is(page.total_count, i + 1);
  }
});

test('operators’ credits and corrections are in the log with their notes, also before the ledger is processed', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount({ balance: '1' });
  const [code] = await createCodes(stack, 1);
  await redeem(stack, account, code!);
  const credit = (id: string, amount: string, note?: string) =>
    runRefill(stack.redis, {
      amountNano: parseRub(amount)!,
      freeRequests: 0,
      event: {
        ...createRefillEvent(id, account.id, 'admin'),
        ...(note !== undefined && { note }),
      },
    });
  await credit('a credit', '7', 'invoice 17');
  await credit('a correction', '-2.5');
  t.is(await readBalance(stack, account), 18);
  const expected = [
    { refill_code_redeemed: '', balance_added: '-2.5', source: 'operator', note: null },
    { refill_code_redeemed: '', balance_added: '7', source: 'operator', note: 'invoice 17' },
    { refill_code_redeemed: code, balance_added: '12.5', source: 'code', note: null },
  ] as const;
  const before = await readLog(stack, account);
  t.is(before.total_count, 3);
  for (const [i, row] of expected.entries()) t.like(before.items[i], row);

  await stack.startWorker();
  const stream = redisKeys.ledgerStream(shardOf(account.id));
  await waitFor('the ledger to be processed', async () => (await stack.redis.xlen(stream)) === 0);
  t.deepEqual(await readLog(stack, account), before);
});

test('a row that an earlier release wrote is shown as that of a code', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const account = await stack.createAccount({ balance: '0' });
  const row = { _id: 'an old row', accountId: account.id, at: new Date(), ordinal: 1, code: 'CODE-1' };
  await stack.mongo.db
    .collection<{ _id: string }>('refill_logs')
    .insertOne({ ...row, amountNano: 1n, freeRequests: 0 } as { _id: string });
  const { items } = await readLog(stack, account);
  t.like(items[0], { refill_code_redeemed: 'CODE-1', source: 'code', note: null });
});
