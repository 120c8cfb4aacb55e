import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { creditClaim } from '../../../shared/refills/credit-claim.ts';
import { finishClaims, type FinishClaimsDeps } from '../../../shared/refills/finish-claims.ts';
import {
  RefillCodeStore,
  type RedemptionClaim,
  type RefillCodeDocument,
} from '../../../shared/refills/refill-code-store.ts';
import { withdrawRefill } from '../../../shared/refills/withdrawal-store.ts';
import { HotAccountStore } from '../../../shared/billing/hot-account-store.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { formatRub, parseRub } from '../../../shared/pricing/money.ts';
import { redisKeys, shardOf } from '../../../shared/redis/redis-keys.ts';
import { Faults } from '../../../shared/storage/faults.ts';
import { startLedgerReader } from '../../../workers/ledger/ledger-reader.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { forgetAll } from '../../support/all-of-redis.ts';
import { useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/**
 * Claims that a crash left half done: the money arrives once, and the code is settled once its entry is settled.
 */

interface Setting {
  readonly stack: TestStack;
  readonly dependencies: FinishClaimsDeps;
  readonly accountId: string;
  /** Moves the ledger's entries to MongoDB from now on. */
  startReader(): void;
  /** Whether the account's claim is settled. */
  isSettled(claim: RedemptionClaim): Promise<boolean | undefined>;
  /** Claims a new code of 10 roubles for the account, dated `ageMs` ago. */
  claimAged(ageMs?: number): Promise<RedemptionClaim & { readonly text: string }>;
  readBalance(): Promise<string>;
}

async function useSetting(
  t: ExecutionContext,
  { balance = '1', readsLedger = true }: { readonly balance?: string; readonly readsLedger?: boolean } = {},
): Promise<Setting> {
  // A worker would finish claims on its own every few seconds.
  const stack = await useStack(t, { workers: [] });
  const { db } = stack.mongo;
  const accounts = new AccountStore(db, stack.config);
  const codes = new RefillCodeStore(db);
  await codes.createIndexes();
  const ledger = new LedgerStore(db);
  const dependencies = {
    redis: stack.redis,
    hotAccounts: new HotAccountStore(stack.redis, accounts, ledger),
    codes,
    ledger,
    log: stack.log,
  };
  const startReader = (): void => {
    const leases = new ShardLeases(stack.redis, randomUUID(), redisKeys.ledgerLease);
    const reader = startLedgerReader({
      ...dependencies,
      store: ledger,
      accounts,
      leases,
      faults: new Faults(stack.log),
    });
    t.teardown(() => reader.stop());
  };
  if (readsLedger) startReader();
  const { id: accountId } = await stack.createAccount({ balance });
  const documents = db.collection<RefillCodeDocument>('refill_codes');
  return {
    stack,
    dependencies,
    accountId,
    startReader,
    isSettled: async ({ codeId }) => (await documents.findOne({ _id: codeId }))?.redeemed?.settled,
    async claimAged(ageMs = 60_000) {
      const code = { balanceNano: parseRub('10')!, freeRequests: 2, expiresAt: null };
      const text = (await codes.create(1, code))[0]!;
      const claim = await codes.claim(text, accountId, randomUUID());
      const at = new Date(Date.now() - ageMs);
      await documents.updateOne({ _id: claim!.codeId }, { $set: { 'redeemed.at': at } });
      return { ...claim!, at, text };
    },
    readBalance: async () => formatRub((await stack.readAccount(accountId)).balanceNano),
  };
}

/** An entry is removed from its stream last, when MongoDB has all of it. */
async function waitUntilAtRest({ stack, accountId }: Setting): Promise<void> {
  const stream = redisKeys.ledgerStream(shardOf(accountId));
  await waitFor('the ledger to be settled', async () => (await stack.redis.xlen(stream)) === 0);
}

test('a claim whose redeemer died before crediting is credited, and settled once its entry is settled', async (t) => {
  const setting = await useSetting(t);
  const { dependencies } = setting;
  const claim = await setting.claimAged();
  t.is(await finishClaims(dependencies), 0);
  t.is(await setting.readBalance(), '11');
  t.is((await setting.stack.readAccount(setting.accountId)).freeRequests, 2);
  t.false(await setting.isSettled(claim));
  await waitUntilAtRest(setting);
  t.is(await finishClaims(dependencies), 1);
  t.true(await setting.isSettled(claim));
  t.is(await finishClaims(dependencies), 0);
  t.is(await setting.readBalance(), '11');
  const row = await dependencies.ledger.refillLogs.findOne({ _id: claim.refillId });
  t.like(row, { code: claim.text, at: claim.at, amountNano: parseRub('10')! });
});

test('claims that are finished concurrently are credited once each and settled once each', async (t) => {
  const setting = await useSetting(t);
  const { dependencies } = setting;
  for (let i = 0; i < 5; i++) await setting.claimAged();
  const finishAll = () => Promise.all(Array.from({ length: 6 }, () => finishClaims(dependencies)));
  // The entry of a claim that one run credits may be settled before another run checks it.
  const early = await finishAll();
  t.is(await setting.readBalance(), '51');
  await waitUntilAtRest(setting);
  const finished = [...early, ...(await finishAll())];
  t.is(
    finished.reduce((sum, one) => sum + one, 0),
    5,
  );
  await waitUntilAtRest(setting);
  t.is(await setting.readBalance(), '51');
  const entries = await dependencies.ledger.entries.countDocuments({ accountId: setting.accountId });
  t.is(entries, 6);
});

test('a claim that is credited but not settled survives a Redis that lost its data before the entry was settled', async (t) => {
  // Nothing reads the ledger yet, so that the entry is lost with Redis.
  const setting = await useSetting(t, { balance: '0', readsLedger: false });
  const { dependencies, stack } = setting;
  const claim = await setting.claimAged();
  t.not(await creditClaim(dependencies, claim), 'released');
  await forgetAll(stack.redis);
  t.is(await setting.readBalance(), '0');
  t.is(await finishClaims(dependencies), 0);
  t.is(await setting.readBalance(), '10');
  setting.startReader();
  await waitUntilAtRest(setting);
  t.is(await finishClaims(dependencies), 1);
  t.true(await setting.isSettled(claim));
  t.is(await setting.readBalance(), '10');
});

test('a settled refill is not credited again if Redis has lost it', async (t) => {
  const setting = await useSetting(t);
  const { dependencies, stack } = setting;
  const claim = await setting.claimAged();
  t.not(await creditClaim(dependencies, claim), 'released');
  await waitUntilAtRest(setting);
  await forgetAll(stack.redis);
  t.is(await finishClaims(dependencies), 1);
  t.is(await setting.readBalance(), '11');
});

test('a recent claim is left to the request that made it', async (t) => {
  const setting = await useSetting(t);
  // From a clock that is ahead, so that it stays recent however slow this test is.
  const claim = await setting.claimAged(-3_600_000);
  t.is(await finishClaims(setting.dependencies), 0);
  t.is(await setting.readBalance(), '1');
  t.false(await setting.isSettled(claim));
});

test('a claim that would exceed the maximum balance is released, and can no longer be credited', async (t) => {
  const setting = await useSetting(t, { balance: '8999995' });
  const { dependencies } = setting;
  const claim = await setting.claimAged();
  t.is(await finishClaims(dependencies), 0);
  t.is((await dependencies.codes.find(claim.text))?.redeemed, null);
  // A process that still has the old claim finds it withdrawn, even when the balance allows it again.
  await setting.stack.redis.hset(redisKeys.account(setting.accountId), 'bal', '0');
  t.is(await creditClaim(dependencies, claim), 'released');
  t.is(await setting.readBalance(), '0');
  t.truthy(await dependencies.codes.claim(claim.text, setting.accountId, randomUUID()));
});

test('a release that a crash interrupted is completed, and a refill that was credited cannot be withdrawn', async (t) => {
  const setting = await useSetting(t);
  const { dependencies, accountId, stack } = setting;
  const cut = await setting.claimAged();
  t.true(await withdrawRefill(stack.redis, accountId, cut.refillId));
  await finishClaims(dependencies);
  t.is((await dependencies.codes.find(cut.text))?.redeemed, null);
  t.is(await setting.readBalance(), '1');

  const credited = await setting.claimAged();
  t.not(await creditClaim(dependencies, credited), 'released');
  t.false(await withdrawRefill(stack.redis, accountId, credited.refillId));
});

test('a claim that cannot be finished does not block the others', async (t) => {
  const setting = await useSetting(t);
  const { dependencies, stack } = setting;
  const orphan = await setting.claimAged();
  await stack.mongo.db
    .collection<RefillCodeDocument>('refill_codes')
    .updateOne({ _id: orphan.codeId }, { $set: { 'redeemed.accountId': 'nobody' } });
  await setting.claimAged();
  await finishClaims(dependencies);
  t.is(await setting.readBalance(), '11');
});

test('unsettled claims are found through their index', async (t) => {
  const { stack } = await useSetting(t);
  const plan = await stack.mongo.db
    .collection('refill_codes')
    .find({ 'redeemed.settled': false, 'redeemed.at': { $lt: new Date() } })
    .sort({ 'redeemed.at': 1 })
    .explain();
  t.regex(JSON.stringify(plan), /IXSCAN/);
  t.notRegex(JSON.stringify(plan), /COLLSCAN/);
});
