import test from 'ava';
import { nameDay, toDay } from '../../../shared/accounts/budget-periods.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { forgetOldSpending } from '../../../workers/maintenance/forget-old-spending.ts';
import { charge } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

let services: LedgerServices;

test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(() => services.close());

const daysAgo = (days: number): string => nameDay(toDay(Date.now()) - days);

async function spend(accountId: string, days: readonly number[]): Promise<void> {
  const old = Object.fromEntries(days.map((day) => [`spentByDay.${daysAgo(day)}`, 5n]));
  await services.mongo.db.collection('accounts').updateOne({ _id: accountId as never }, { $set: old });
}

const readDays = async (accountId: string): Promise<string[]> =>
  Object.keys((await services.accounts.findById(accountId))?.spentByDay ?? {}).toSorted();

test.serial('what was spent on days that no budget counts is forgotten, and the rest is kept', async (t) => {
  const account = await services.createAccount();
  await charge(services.redis, account, 7n);
  await services.moveAll();
  const today = await readDays(account.id);
  t.is(today.length, 1);
  await spend(account.id, [39, 40, 45, 100, 300]);
  await forgetOldSpending(services);
  t.deepEqual(await readDays(account.id), [...today, daysAgo(39)].toSorted());
});

test.serial('days are forgotten once, and those on which no worker ran later', async (t) => {
  const account = await services.createAccount();
  await forgetOldSpending(services);
  t.is(await services.redis.get(redisKeys.spendingForgotten), String(toDay(Date.now()) - 40));
  await spend(account.id, [41, 60]);
  await forgetOldSpending(services);
  t.deepEqual(await readDays(account.id), [daysAgo(60), daysAgo(41)]);
  // As if no worker had run for two months.
  await services.redis.set(redisKeys.spendingForgotten, toDay(Date.now()) - 100);
  await forgetOldSpending(services);
  t.deepEqual(await readDays(account.id), []);
});
