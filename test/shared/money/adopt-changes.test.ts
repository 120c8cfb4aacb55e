import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import type { AccountChange } from '../../../shared/accounts/account-store.ts';
import { changeAccount } from '../../../shared/accounts/change-account.ts';
import { HotAccountStore } from '../../../shared/accounts/hot-account-store.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { openLedgerServices } from '../../support/ledger-services.ts';
import { waitFor } from '../../support/wait-for.ts';

test('a ban, limit or key changed while the account is being loaded takes effect in Redis', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { redis, accounts, ledger, hotAccounts } = services;
  const { id } = await services.createAccount();
  await services.moveAll();
  await redis.del(redisKeys.account(id));
  let reads = 0;
  const racing = Object.create(accounts, {
    findById: {
      value: async (accountId: string) => {
        const found = await accounts.findById(accountId);
        reads += 1;
        // Changes between this read and its use: the account is not in Redis yet, so nothing there can be updated.
        if (reads === 1) {
          const change = { banned: true, requestsPerMinute: 1, maxQueuedJobs: 0, weight: 9 };
          await changeAccount({ redis, accounts, hotAccounts }, id, change);
          await accounts.replaceKey(id);
        }
        return found;
      },
    },
  }) as typeof accounts;
  await new HotAccountStore(redis, racing, ledger).load(id);
  const stored = await accounts.findById(id);
  const expected = { banned: true, requestsPerMinute: 1, maxQueuedJobs: 0, weight: 9 };
  t.like(await hotAccounts.get(id), { ...expected, keyHash: stored!.keyHash });
});

test('a ban, limit or key changed during a reload takes effect even if MongoDB is not read again', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { redis, accounts, ledger, hotAccounts } = services;
  const { id } = await services.createAccount();
  await services.moveAll();
  let reads = 0;
  const failing = Object.create(accounts, {
    findById: {
      value: async (accountId: string) => {
        reads += 1;
        if (reads > 1) throw new Error('the process dies');
        const found = await accounts.findById(accountId);
        const change = { banned: true, requestsPerMinute: 1, maxQueuedJobs: 0, weight: 9 };
        await changeAccount({ redis, accounts, hotAccounts }, id, change);
        const replaced = await accounts.replaceKey(id);
        await hotAccounts.setKey(id, replaced!.keyHash);
        return found;
      },
    },
  }) as typeof accounts;
  await redis.hset(redisKeys.account(id), 'bal', '5');
  await t.throwsAsync(new HotAccountStore(redis, failing, ledger).reload(id), {
    message: 'the process dies',
  });
  const stored = await accounts.findById(id);
  const changed = { banned: true, requestsPerMinute: 1, maxQueuedJobs: 0, weight: 9 };
  const expected = { ...changed, keyHash: stored!.keyHash, balanceNano: 1_000n };
  t.like(await hotAccounts.get(id), expected);
});

test('of two changes at the same time, the one that MongoDB has last holds in Redis, too', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { redis, accounts, hotAccounts } = services;
  const { id } = await services.createAccount();
  /** Makes the first change in MongoDB, the whole of the second one, and then the rest of the first. */
  const changeInTurns = async (first: AccountChange, second: AccountChange): Promise<void> => {
    const overtaken = Object.create(accounts, {
      update: {
        value: async (accountId: string, change: AccountChange) => {
          await accounts.update(accountId, change);
          await changeAccount(services, accountId, second);
        },
      },
    }) as typeof accounts;
    await changeAccount({ redis, accounts: overtaken, hotAccounts }, id, first);
  };
  await changeInTurns({ banned: true, banReason: 'x' }, { banned: false, banReason: null });
  t.false((await hotAccounts.get(id)).banned);
  await changeInTurns({ banned: false, banReason: null }, { banned: true, banReason: 'x' });
  t.true((await hotAccounts.get(id)).banned);
  const [one, other] = [
    { requestsPerMinute: 1, maxQueuedJobs: 2, weight: 3 },
    { requestsPerMinute: 4, maxQueuedJobs: 5, weight: 6 },
  ];
  await changeInTurns(one, other);
  t.like(await hotAccounts.get(id), other);
});

test('a reload replaces an outdated key, limits and ban in Redis with those in MongoDB', async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { accounts, hotAccounts } = services;
  const { id } = await services.createAccount();
  await services.moveAll();
  const change = { banned: true, requestsPerMinute: 1, maxQueuedJobs: 0, weight: 9 };
  await accounts.update(id, change);
  await accounts.replaceKey(id);
  await hotAccounts.reload(id);
  const stored = await accounts.findById(id);
  t.like(await hotAccounts.get(id), { ...change, keyHash: stored!.keyHash });
});

test("concurrent look-ups of an account's key share one MongoDB query while it hangs, and a new query starts after it times out", async (t) => {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { redis, accounts, ledger } = services;
  const { id } = await services.createAccount();
  await services.moveAll();
  let isAway = true;
  let queries = 0;
  const hanging = Object.create(accounts, {
    findById: {
      value: async (accountId: string) => {
        queries += 1;
        if (isAway) await new Promise(() => undefined);
        return await accounts.findById(accountId);
      },
    },
  }) as typeof accounts;
  const store = new HotAccountStore(redis, hanging, ledger, { maxLoadMs: 200 });
  const concurrent = await Promise.allSettled(Array.from({ length: 50 }, () => store.adoptShared(id)));
  t.true(concurrent.every(({ status }) => status === 'rejected'));
  t.is(queries, 1);
  await t.throwsAsync(store.load('another'));
  isAway = false;
  // On a busy machine a load may exceed `maxLoadMs`.
  const adopt = () => store.adoptShared(id).catch(() => null);
  t.is((await waitFor('the account', adopt))._id, id);
  await waitFor('the other account', () => store.load('another').catch((error: unknown) => isUnknown(error)));
});

const isUnknown = (error: unknown): boolean => error instanceof AppError && error.code === 'invalid_api_key';
