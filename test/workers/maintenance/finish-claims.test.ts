import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { AccountStore } from '../../../shared/accounts/account-store.ts';
import { creditClaim } from '../../../shared/accounts/credit-claim.ts';
import { finishClaims, type FinishClaimsDeps } from '../../../workers/maintenance/finish-claims.ts';
import {
  RefillCodeStore,
  type RedemptionClaim,
  type RefillCodeDocument,
} from '../../../shared/accounts/refill-code-store.ts';
import { voidRefill } from '../../../shared/accounts/void-refill-store.ts';
import { HotAccountStore } from '../../../shared/accounts/hot-account-store.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { formatRub, parseRub } from '../../../shared/encoding/money.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { Faults } from '../../../workers/reporting/faults.ts';
import { startLedgerReader } from '../../../workers/ledger/ledger-reader.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { useStack, type TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';

/**
 * Redemption claims left unfinished by a crash: the money is credited exactly once, and the code is marked as settled
 * when its ledger entry is in MongoDB.
 */

interface Fixture {
  readonly stack: TestStack;
  readonly dependencies: FinishClaimsDeps;
  readonly accountId: string;
  /** Starts to move ledger entries to MongoDB. */
  startReader(): void;
  /** Whether the account's claim is settled. */
  isSettled(claim: RedemptionClaim): Promise<boolean | undefined>;
  /** Claims a new code of 10 roubles for the account, dated `ageMs` ago. */
  claimWithAge(ageMs?: number): Promise<RedemptionClaim & { readonly text: string }>;
  readBalance(): Promise<string>;
}

async function createFixture(
  t: ExecutionContext,
  { balance = '1', readsLedger = true }: { readonly balance?: string; readonly readsLedger?: boolean } = {},
): Promise<Fixture> {
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
    async claimWithAge(ageMs = 60_000) {
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

/** Waits until the stream is empty: an entry is removed from it only when MongoDB has all of it. */
async function waitUntilSettled({ stack, accountId }: Fixture): Promise<void> {
  const stream = redisKeys.ledgerStream(shardOf(accountId));
  await waitFor('the ledger to be settled', async () => (await stack.redis.xlen(stream)) === 0);
}

test('if the redeeming process died before crediting, the claim is credited, and settled once its entry is in MongoDB', async (t) => {
  const fixture = await createFixture(t);
  const { dependencies } = fixture;
  const claim = await fixture.claimWithAge();
  t.is(await finishClaims(dependencies), 0);
  t.is(await fixture.readBalance(), '11');
  t.is((await fixture.stack.readAccount(fixture.accountId)).freeRequests, 2);
  t.false(await fixture.isSettled(claim));
  await waitUntilSettled(fixture);
  t.is(await finishClaims(dependencies), 1);
  t.true(await fixture.isSettled(claim));
  t.is(await finishClaims(dependencies), 0);
  t.is(await fixture.readBalance(), '11');
  const row = await dependencies.ledger.refillLogs.findOne({ _id: claim.refillId });
  t.like(row, { code: claim.text, at: claim.at, amountNano: parseRub('10')! });
});

test('concurrent runs of finishClaims credit each claim once and settle it once', async (t) => {
  const fixture = await createFixture(t);
  const { dependencies } = fixture;
  for (let i = 0; i < 5; i++) await fixture.claimWithAge();
  const finishAll = () => Promise.all(Array.from({ length: 6 }, () => finishClaims(dependencies)));
  // Some claims may already be settled here: one run credits a claim, and its entry may reach MongoDB before another
  // run checks the claim.
  const early = await finishAll();
  t.is(await fixture.readBalance(), '51');
  await waitUntilSettled(fixture);
  const finished = [...early, ...(await finishAll())];
  t.is(
    finished.reduce((sum, one) => sum + one, 0),
    5,
  );
  await waitUntilSettled(fixture);
  t.is(await fixture.readBalance(), '51');
  const entries = await dependencies.ledger.entries.countDocuments({ accountId: fixture.accountId });
  t.is(entries, 6);
});

test('if Redis loses its data before the entry of a credited claim is in MongoDB, the claim is credited again', async (t) => {
  // The ledger reader is not running yet, so that the entry is lost with Redis.
  const fixture = await createFixture(t, { balance: '0', readsLedger: false });
  const { dependencies, stack } = fixture;
  const claim = await fixture.claimWithAge();
  t.not(await creditClaim(dependencies, claim), 'released');
  await flushAll(stack.redis);
  t.is(await fixture.readBalance(), '0');
  t.is(await finishClaims(dependencies), 0);
  t.is(await fixture.readBalance(), '10');
  fixture.startReader();
  await waitUntilSettled(fixture);
  t.is(await finishClaims(dependencies), 1);
  t.true(await fixture.isSettled(claim));
  t.is(await fixture.readBalance(), '10');
});

test('a settled refill is not credited again if Redis has lost it', async (t) => {
  const fixture = await createFixture(t);
  const { dependencies, stack } = fixture;
  const claim = await fixture.claimWithAge();
  t.not(await creditClaim(dependencies, claim), 'released');
  await waitUntilSettled(fixture);
  await flushAll(stack.redis);
  t.is(await finishClaims(dependencies), 1);
  t.is(await fixture.readBalance(), '11');
});

test('a recent claim is not finished here, because the request that created it may still be running', async (t) => {
  const fixture = await createFixture(t);
  // Dated in the future, so that it is still recent if this test is slow.
  const claim = await fixture.claimWithAge(-3_600_000);
  t.is(await finishClaims(fixture.dependencies), 0);
  t.is(await fixture.readBalance(), '1');
  t.false(await fixture.isSettled(claim));
});

test('a claim that would exceed the maximum balance is released, and can no longer be credited', async (t) => {
  const fixture = await createFixture(t, { balance: '8999995' });
  const { dependencies } = fixture;
  const claim = await fixture.claimWithAge();
  t.is(await finishClaims(dependencies), 0);
  t.is((await dependencies.codes.find(claim.text))?.redeemed, null);
  // A process that still has the old claim cannot credit it, even after the balance has fallen.
  await fixture.stack.redis.hset(redisKeys.account(fixture.accountId), 'bal', '0');
  t.is(await creditClaim(dependencies, claim), 'released');
  t.is(await fixture.readBalance(), '0');
  t.truthy(await dependencies.codes.claim(claim.text, fixture.accountId, randomUUID()));
});

test('an interrupted release is completed, and a refill that was credited cannot be voided', async (t) => {
  const fixture = await createFixture(t);
  const { dependencies, accountId, stack } = fixture;
  const interrupted = await fixture.claimWithAge();
  t.true(await voidRefill(stack.redis, accountId, interrupted.refillId));
  await finishClaims(dependencies);
  t.is((await dependencies.codes.find(interrupted.text))?.redeemed, null);
  t.is(await fixture.readBalance(), '1');

  const credited = await fixture.claimWithAge();
  t.not(await creditClaim(dependencies, credited), 'released');
  t.false(await voidRefill(stack.redis, accountId, credited.refillId));
});

test('a claim that cannot be finished does not block other claims', async (t) => {
  const fixture = await createFixture(t);
  const { dependencies, stack } = fixture;
  const orphan = await fixture.claimWithAge();
  await stack.mongo.db
    .collection<RefillCodeDocument>('refill_codes')
    .updateOne({ _id: orphan.codeId }, { $set: { 'redeemed.accountId': 'nobody' } });
  await fixture.claimWithAge();
  await finishClaims(dependencies);
  t.is(await fixture.readBalance(), '11');
});

test('the queries for unsettled claims use their indexes', async (t) => {
  const { stack } = await createFixture(t);
  const codes = stack.mongo.db.collection('refill_codes');
  const isPending = { 'redeemed.settled': false };
  const queries = [
    codes.find({ ...isPending, 'redeemed.at': { $lt: new Date() } }).sort({ 'redeemed.at': 1 }),
    codes.find({ ...isPending, 'redeemed.refillId': { $in: ['one', 'other'] } }),
  ];
  for (const query of queries) {
    const plan = JSON.stringify(await query.explain());
    t.regex(plan, /IXSCAN/);
    t.notRegex(plan, /COLLSCAN/);
  }
});
