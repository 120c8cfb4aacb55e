import test, { type ExecutionContext } from 'ava';
import { presentSpend, writeSpendCsv } from '../../../shared/ledger/present-spend.ts';
import {
  allModels,
  type AccountSpendDocument,
  type ModelSpendDocument,
  type SpendFilter,
} from '../../../shared/ledger/spend-store.ts';
import { defaultDimensions, type SpendDimension } from '../../../shared/ledger/sum-spend.ts';
import type { AdminSpend } from '../../../shared/contract/admin-requests.ts';
import { shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { useLedgerStore } from '../../support/use-ledger-store.ts';

const sums = (requests: number) => ({
  requests,
  failures: 1,
  rows: requests,
  promptTokens: 10 * requests,
  cacheReadTokens: 2,
  completionTokens: 3 * requests,
  costNano: BigInt(requests) * 1_000_000_000n,
  freeRequests: 0,
  vendorCostNano: BigInt(requests) * 400_000_000n,
  costedRequests: requests,
  costedNano: BigInt(requests) * 1_000_000_000n,
  appliedMs: 1,
  appliedSeq: 0,
});

const days = ['2026-11-01', '2026-11-02', '2026-11-03'];
const models = ['chat', 'image'];

/** Spending of so many accounts: the account of number i has i + 1 requests a day and model. */
async function useSpending(t: ExecutionContext, accountCount: number) {
  const { ledger, db } = await useLedgerStore(t);
  const accounts = Array.from({ length: accountCount }, (_, i) => `account-${String(i).padStart(4, '0')}`);
  await db
    .collection<{ _id: string; name: string }>('accounts')
    .insertMany(accounts.map((_id, i) => ({ _id, name: `Account ${i}` })));
  const ofAccounts: AccountSpendDocument[] = [];
  const ofModels = new Map<string, ModelSpendDocument>();
  for (const [i, accountId] of accounts.entries())
    for (const day of days)
      for (const model of models) {
        ofAccounts.push({ _id: `${accountId}:${day}:${model}`, accountId, day, model, ...sums(i + 1) });
        const shard = shardOf(accountId);
        for (const name of [model, allModels]) {
          const _id = `${shard}:${day}:${name}`;
          const before = ofModels.get(_id)?.requests ?? 0;
          ofModels.set(_id, { _id, shard, day, model: name, ...sums(before + i + 1) });
        }
      }
  await ledger.spend.ofAccounts.insertMany(ofAccounts);
  await ledger.spend.ofModels.insertMany([...ofModels.values()]);
  const read = async (
    by: readonly SpendDimension[],
    more: Partial<SpendFilter> = {},
  ): Promise<AdminSpend[]> => {
    const rows: AdminSpend[] = [];
    const filter = { since: days[0]!, until: days.at(-1)!, ...more };
    for await (const row of ledger.spend.read(filter, new Set(by))) rows.push(presentSpend(row));
    return rows;
  };
  return { ledger, accounts, read };
}

test('spending is summed by any of account, model and day, in this order', async (t) => {
  const { accounts, read } = await useSpending(t, 3);
  const requestsOf = (account: string): number => accounts.indexOf(account) + 1;
  t.deepEqual(
    (await read(['account', 'model', 'day'])).map(({ account, model, day, requests }) => [
      account,
      day,
      model,
      requests,
    ]),
    accounts.flatMap((account) =>
      days.flatMap((day) => models.map((model) => [account, day, model, requestsOf(account)])),
    ),
  );
  t.deepEqual(
    (await read(['account'])).map(({ account, requests }) => [account, requests]),
    accounts.map((account) => [account, 6 * requestsOf(account)]),
  );
  t.deepEqual(
    (await read(['account', 'model'])).map(({ account, model, requests }) => [account, model, requests]),
    accounts.flatMap((account) => models.map((model) => [account, model, 3 * requestsOf(account)])),
  );
  t.deepEqual(
    (await read(['account', 'day'])).map(({ account, day, requests, cost, name }) => [
      account,
      name,
      day,
      requests,
      cost,
    ]),
    accounts.flatMap((account, i) =>
      days.map((day) => [account, `Account ${i}`, day, 2 * requestsOf(account), 2 * requestsOf(account)]),
    ),
  );
  t.deepEqual(
    (await read(['model'])).map(({ model, requests }) => [model, requests]),
    models.map((model) => [model, 18]),
  );
  t.deepEqual(
    (await read(['day'])).map(({ day, requests }) => [day, requests]),
    days.map((day) => [day, 12]),
  );
  t.like(await read([]), [{ requests: 36, cost: 36, vendor_cost: 14.4, margin: 21.6 }]);
  t.deepEqual(Object.keys((await read(['day']))[0]!).slice(0, 2), ['day', 'requests']);
});

test('an account, a model and days select what is summed', async (t) => {
  const { read } = await useSpending(t, 3);
  t.like(await read([], { accountId: 'account-0001' }), [{ requests: 12 }]);
  t.like(await read([], { accountId: 'account-0001', model: 'chat', since: days[1]!, until: days[1]! }), [
    { requests: 2 },
  ]);
  t.like(await read(['account'], { model: 'image' }), [{ requests: 3 }, { requests: 6 }, { requests: 9 }]);
  t.like(await read([], { until: days[0]! }), [{ requests: 12 }]);
  t.deepEqual(await read(['account', 'day'], { since: '2027-01-01', until: '2027-01-31' }), []);
});

test('many accounts are read in the order of their ids', async (t) => {
  const { accounts, read } = await useSpending(t, 450);
  t.deepEqual(
    (await read(['account'], { until: days[0]! })).map(({ account }) => account),
    accounts,
  );
});

test('pages of accounts without sums are empty, and a read that is refused ends the reading', async (t) => {
  const { ledger } = await useSpending(t, 450);
  const filter = { since: days[0]!, until: days[0]!, model: 'used by nobody' };
  let reads = 0;
  const pages = ledger.spend.readPages(filter, new Set(['account']), async (read) => {
    reads += 1;
    if (reads > 2) throw new Error('the caller has left');
    return await read();
  });
  t.deepEqual(await pages.next(), { done: false, value: [] }, 'after the first accounts, not after all');
  t.is(reads, 2);
  await t.throwsAsync(pages.next(), { message: 'the caller has left' });
  t.is(reads, 3);
});

test('a margin counts only requests whose vendor cost is known', (t) => {
  const row = { account: null, name: null, upstream: null, model: 'chat', day: null, ...sums(10) };
  t.like(presentSpend({ ...row, costedRequests: 4, costedNano: 5_000_000_000n }), {
    cost: 10,
    vendor_cost: 4,
    margin: 1,
    costed_requests: 4,
  });
  t.like(presentSpend({ ...row, costedRequests: 0, costedNano: 0n, vendorCostNano: 0n }), {
    vendor_cost: null,
    margin: null,
  });
});

test('as CSV, spending has a column for each dimension, and exact amounts', async (t) => {
  const { ledger } = await useSpending(t, 1);
  const by = new Set(defaultDimensions);
  const filter = { since: days[0]!, until: days[0]!, model: 'chat' };
  let text = '';
  for await (const piece of writeSpendCsv(ledger.spend.readPages(filter, by), by)) text += piece;
  t.deepEqual(text.split('\r\n'), [
    'account,model,day,requests,failures,free_requests,prompt_tokens,cached_tokens,completion_tokens,cost,vendor_cost,' +
      'margin,costed_requests,name',
    'account-0000,chat,2026-11-01,1,1,0,10,2,3,1,0.4,0.6,1,Account 0',
    '',
  ]);
});
