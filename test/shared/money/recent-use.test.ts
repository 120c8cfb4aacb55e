import { randomUUID } from 'node:crypto';
import test from 'ava';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { admission, failureEvent, usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

/** The totals of an account's requests in the last hour, stored in one slot per minute. */

let services: LedgerServices;
test.before(async () => {
  services = await openLedgerServices();
});
test.after.always(async () => {
  await services.close();
});

async function charge(
  account: { id: string; keyHash: string },
  costNano: bigint,
  fails = false,
): Promise<void> {
  const request = admission(account.id, { keyHash: account.keyHash, fixedNano: costNano });
  await runAdmission(services.redis, request);
  const event = (fails ? failureEvent : usageEvent)(account.id, request.requestId);
  await runSettlement(services.redis, event, fails ? null : costNano);
}

/** Writes the content of a slot for this much spending this many minutes ago. */
async function spendMinutesAgo(id: string, minutes: number, requests: number, nano: number): Promise<void> {
  const minute = Math.floor(Date.now() / 60_000) - minutes;
  await services.redis.hset(redisKeys.recentMinutes(id), minute % 60, `${minute} ${requests} ${nano}`);
}

test('an account that was never used has no recent use', async (t) => {
  t.deepEqual(await services.hotAccounts.readRecentUse(randomUUID()), { requests: 0, costNano: 0n });
});

test('recent use is the number and total cost of requests, including failures, and expires after an hour without requests', async (t) => {
  const account = await services.createAccount();
  await charge(account, 10n);
  await charge(account, 7n);
  await charge(account, 0n, true);
  t.deepEqual(await services.hotAccounts.readRecentUse(account.id), { requests: 3, costNano: 17n });
  const ttl = await services.redis.ttl(redisKeys.recentMinutes(account.id));
  t.true(ttl > 3_600 && ttl <= 3_660);
});

test('requests in the last hour are included, older ones are not', async (t) => {
  const account = await services.createAccount();
  await charge(account, 5n);
  // Half an hour ago is far from both ends of the last hour.
  await spendMinutesAgo(account.id, 30, 4, 100);
  t.deepEqual(await services.hotAccounts.readRecentUse(account.id), { requests: 5, costNano: 105n });
  await spendMinutesAgo(account.id, 30 + 60, 40, 1_000);
  t.deepEqual(await services.hotAccounts.readRecentUse(account.id), { requests: 1, costNano: 5n });
});

test('a slot that still has the total of an hour ago is reset when it is reused', async (t) => {
  const account = await services.createAccount();
  for (let minutes = 60; minutes < 120; minutes++) await spendMinutesAgo(account.id, minutes, 9, 900);
  t.deepEqual(await services.hotAccounts.readRecentUse(account.id), { requests: 0, costNano: 0n });
  await charge(account, 5n);
  t.deepEqual(await services.hotAccounts.readRecentUse(account.id), { requests: 1, costNano: 5n });
  t.is(await services.redis.hlen(redisKeys.recentMinutes(account.id)), 60);
});

test('large sums within a minute stay exact', async (t) => {
  const account = await services.createAccount({ balanceNano: 8_000_000_000_000_001n });
  await charge(account, 8_000_000_000_000_000n);
  await charge(account, 1n);
  t.is((await services.hotAccounts.readRecentUse(account.id)).costNano, 8_000_000_000_000_001n);
});
