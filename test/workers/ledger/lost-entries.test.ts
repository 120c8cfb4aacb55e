import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { runRefill } from '../../../shared/accounts/refill-script.ts';
import { runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { LedgerStore, toLedgerDocument } from '../../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { ShardLedger } from '../../../workers/ledger/shard-ledger.ts';
import { admission, readEntries, usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { takeRedisSnapshot } from '../../support/redis-snapshot.ts';
import { waitFor } from '../../support/wait-for.ts';

/**
 * The power fails while a reader moves a batch from Redis to MongoDB. MongoDB keeps every completed step; Redis loses
 * its last second. Every ledger entry must then be included in the balances, both in MongoDB and in Redis.
 */

interface TestAccount {
  readonly id: string;
  readonly keyHash: string;
}

async function useServices(t: ExecutionContext): Promise<LedgerServices> {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  return services;
}

/** An account of 1 000 nano-roubles that is already in MongoDB. No reader runs. */
async function createStored(services: LedgerServices): Promise<TestAccount> {
  const account = await services.createAccount({ balanceNano: 1_000n });
  await services.moveAll();
  return account;
}

async function admit(
  { redis }: LedgerServices,
  { id, keyHash }: TestAccount,
  fixedNano: bigint,
): Promise<string> {
  const request = admission(id, { keyHash, fixedNano });
  const { outcome } = await runAdmission(redis, request);
  if (outcome !== 'ok') throw new Error(`the request was not admitted: ${outcome}`);
  return request.requestId;
}

async function settle(
  { redis }: LedgerServices,
  account: TestAccount,
  requestId: string,
  cost: bigint,
): Promise<void> {
  await runSettlement(redis, usageEvent(account.id, requestId), cost);
}

async function charge(services: LedgerServices, account: TestAccount, costNano: bigint): Promise<void> {
  await settle(services, account, await admit(services, account, costNano), costNano);
}

/** The steps that write a batch to MongoDB, in order. */
const steps = [
  'insertEntries',
  'insertLogs',
  'insertRefillLogs',
  'addToAccounts',
  'addToStats',
  'addToAccountSpend',
  'addToModelSpend',
  'writeCheckpoint',
] as const satisfies readonly (keyof LedgerStore)[];
type Step = (typeof steps)[number];

/** Creates a store with the given step replaced. */
function replaceStep<S extends Step>(services: LedgerServices, step: S, run: LedgerStore[S]): LedgerStore {
  return Object.assign(new LedgerStore(services.mongo.db), { [step]: run });
}

/** Runs a reader that fails at this step while it moves the entries to MongoDB. */
async function crashAt(services: LedgerServices, step: Step): Promise<void> {
  let isReached = false;
  const store = replaceStep(services, step, async () => {
    isReached = true;
    throw new Error('power failure');
  });
  const reader = services.startReader(store);
  await waitFor(step, () => isReached, 15_000);
  await reader.stop();
}

async function sumLedger({ ledger }: LedgerServices, id: string): Promise<bigint> {
  const rows = await ledger.entries.find({ accountId: id }).toArray();
  return rows.reduce((sum, row) => sum + row.amountNano, 0n);
}

/** Runs a reader until the ledger and the balances in MongoDB and in Redis have this value. */
async function expectEverywhere(
  t: ExecutionContext,
  services: LedgerServices,
  { id }: TestAccount,
  balance: bigint,
): Promise<void> {
  const reader = services.startReader();
  const readAll = async () => {
    const stream = await services.redis.xlen(redisKeys.ledgerStream(shardOf(id)));
    const inLedger = await sumLedger(services, id);
    const inMongo = (await services.accounts.findById(id))?.balanceNano;
    return { stream, inLedger, inMongo, inRedis: (await services.readHash(id))['bal'] };
  };
  const expected = { stream: 0, inLedger: balance, inMongo: balance, inRedis: String(balance) };
  const isReached = async (): Promise<boolean> => {
    const found = await readAll();
    return (Object.keys(expected) as (keyof typeof expected)[]).every((key) => found[key] === expected[key]);
  };
  await waitFor('the same balance everywhere', isReached, 15_000).catch(() => undefined);
  await reader.stop();
  t.deepEqual(await readAll(), expected);
}

for (const step of steps) {
  test.serial(
    `a charge lost by Redis after a reader died before ${step} is in the balance if MongoDB has it`,
    async (t) => {
      const services = await useServices(t);
      const account = await createStored(services);
      const rollBack = await takeRedisSnapshot(services.redis);
      await charge(services, account, 100n);
      await crashAt(services, step);
      await rollBack();
      await charge(services, account, 5n);
      // If the reader died before the first row was written, MongoDB does not have the charge, and it is refunded.
      await expectEverywhere(t, services, account, step === 'insertEntries' ? 995n : 895n);
    },
  );
}

test.serial(
  'a charge lost by Redis after MongoDB has deducted it is not refunded, even if no charge follows it',
  async (t) => {
    const services = await useServices(t);
    const account = await createStored(services);
    const rollBack = await takeRedisSnapshot(services.redis);
    await charge(services, account, 100n);
    await crashAt(services, 'writeCheckpoint');
    await rollBack();
    t.is((await services.readHash(account.id))['bal'], '1000');
    await expectEverywhere(t, services, account, 900n);
    await charge(services, account, 7n);
    await expectEverywhere(t, services, account, 893n);
  },
);

test.serial('the stream of a shard is advanced once for all restored accounts', async (t) => {
  const services = await useServices(t);
  const first = await createStored(services);
  const shard = shardOf(first.id);
  const others = [await services.createAccount({ shard }), await services.createAccount({ shard })];
  await services.moveAll();
  const rollBack = await takeRedisSnapshot(services.redis);
  // Charges the accounts in the order in which MongoDB returns them: each has a later position than the one before.
  for (const account of [first, ...others].toSorted((one, other) => (one.id < other.id ? -1 : 1)))
    await charge(services, account, 100n);
  await crashAt(services, 'writeCheckpoint');
  await rollBack();
  const countAdded = async (): Promise<number> => {
    const info = (await services.redis.xinfo('STREAM', redisKeys.ledgerStream(shard))) as unknown[];
    return Number(info[info.indexOf('entries-added') + 1]);
  };
  const before = await countAdded();
  const log = createLogger('test', 'silent');
  t.is(await new ShardLedger({ ...services, store: services.ledger, log }, shard).moveBatch(), 0);
  t.is((await countAdded()) - before, 1);
  await expectEverywhere(t, services, first, 900n);
});

test.serial('only a limited number of accounts is queried in Redis at a time', async (t) => {
  const services = await useServices(t);
  const checkpoint = { ms: 1, seq: 0 };
  await services.ledger.writeCheckpoint(0, checkpoint);
  const ids = Array.from({ length: 3_000 * shardCount }, (_, i) => `account-${i}`);
  services.accounts.findAppliedSince = async () => new Map(ids.map((id) => [id, checkpoint]));
  let queries = 0;
  let waiting = 0;
  let maxWaiting = 0;
  services.redis.exists = (async () => {
    queries += 1;
    waiting += 1;
    maxWaiting = Math.max(maxWaiting, waiting);
    await setImmediate();
    waiting -= 1;
    return 0;
  }) as never;
  const log = createLogger('test', 'silent');
  t.is(await new ShardLedger({ ...services, store: services.ledger, log }, 0).moveBatch(), 0);
  t.is(queries, ids.filter((id) => shardOf(id) === 0).length);
  t.is(maxWaiting, 1_000);
});

for (const step of ['insertRefillLogs', 'writeCheckpoint'] as const) {
  test.serial(`a redemption lost by Redis is credited after a reader died before ${step}`, async (t) => {
    const services = await useServices(t);
    const account = await createStored(services);
    const rollBack = await takeRedisSnapshot(services.redis);
    const event = createRefillEvent(randomUUID(), account.id, 'code', 'CODE');
    await runRefill(services.redis, { amountNano: 50n, freeRequests: 0, event });
    await crashAt(services, step);
    await rollBack();
    await charge(services, account, 5n);
    await expectEverywhere(t, services, account, 1_045n);
  });
}

test.serial(
  'a request that runs again because Redis lost its settlement is charged once, even if another charge follows',
  async (t) => {
    const services = await useServices(t);
    const account = await createStored(services);
    const image = await admit(services, account, 100n);
    const rollBack = await takeRedisSnapshot(services.redis);
    await settle(services, account, image, 100n);
    await crashAt(services, 'insertLogs');
    await rollBack();
    await settle(services, account, image, 100n);
    await charge(services, account, 5n);
    await expectEverywhere(t, services, account, 895n);
  },
);

test.serial(
  'requests that ran again are charged once each, even if restoring one of their accounts fails at first',
  async (t) => {
    const services = await useServices(t);
    const one = await createStored(services);
    const other = await services.createAccount({ balanceNano: 1_000n, shard: shardOf(one.id) });
    await services.moveAll();
    const runs = [
      { account: one, requestId: await admit(services, one, 100n) },
      { account: other, requestId: await admit(services, other, 100n) },
    ];
    const rollBack = await takeRedisSnapshot(services.redis);
    const settleAll = async (): Promise<void> => {
      for (const { account, requestId } of runs) await settle(services, account, requestId, 100n);
    };
    await settleAll();
    await services.moveAll();
    await rollBack();
    await settleAll();
    const open = () =>
      new ShardLedger(
        { ...services, store: services.ledger, log: createLogger('test', 'silent') },
        shardOf(one.id),
      );
    const ledger = open();
    t.is(await ledger.moveBatch(), 0, 'what Redis lost is restored first');
    const { hotAccounts } = services;
    const reload = hotAccounts.reload.bind(hotAccounts);
    hotAccounts.reload = async () => {
      hotAccounts.reload = reload;
      throw new Error('Redis is down');
    };
    await t.throwsAsync(ledger.moveBatch(), { message: 'Redis is down' });
    await open().moveBatch();
    await expectEverywhere(t, services, one, 900n);
    await expectEverywhere(t, services, other, 900n);
  },
);

test.serial(
  'if the last charge of an account is lost, earlier charges that are still in the stream are applied',
  async (t) => {
    const services = await useServices(t);
    const account = await createStored(services);
    await charge(services, account, 10n);
    const rollBack = await takeRedisSnapshot(services.redis);
    await charge(services, account, 200n);
    // Rows are inserted in no fixed order: here the row of the second charge exists without the first.
    const entries = await readEntries(services.redis, account.id);
    await services.ledger.insertEntries(entries.slice(1).map(toLedgerDocument));
    await rollBack();
    await services.hotAccounts.reload(account.id);
    t.is((await services.readHash(account.id))['bal'], '790');
    await expectEverywhere(t, services, account, 790n);
  },
);

test.serial(
  'if Redis loses data while a batch is written to MongoDB, the reader detects it when it trims the batch',
  async (t) => {
    const services = await useServices(t);
    const account = await createStored(services);
    const rollBack = await takeRedisSnapshot(services.redis);
    await charge(services, account, 100n);
    let isRolledBack = false;
    const store = replaceStep(services, 'writeCheckpoint', async (...args) => {
      await services.ledger.writeCheckpoint(...args);
      if ((await sumLedger(services, account.id)) === 900n) {
        await rollBack();
        isRolledBack = true;
      }
    });
    const reader = services.startReader(store);
    await waitFor('Redis to be rolled back', () => isRolledBack, 15_000);
    const isRestored = async (): Promise<boolean> => (await services.readHash(account.id))['bal'] === '900';
    await t.notThrowsAsync(waitFor('the account to be restored', isRestored, 15_000));
    await reader.stop();
  },
);

test.serial(
  'if another reader moved entries in between, a reader checks the shard again before it continues',
  async (t) => {
    const services = await useServices(t);
    const account = await createStored(services);
    const shard = shardOf(account.id);
    const log = createLogger('test', 'silent');
    const fast = new ShardLedger({ ...services, store: services.ledger, log }, shard);
    await charge(services, account, 1n);
    // Between the checkpoint and the trim of the slow reader, the fast reader moves the same batch and another one.
    let isOvertaken = false;
    const store = replaceStep(services, 'writeCheckpoint', async (...args) => {
      await services.ledger.writeCheckpoint(...args);
      if (isOvertaken) return;
      isOvertaken = true;
      t.is(await fast.moveBatch(), 1);
      await charge(services, account, 1n);
      t.is(await fast.moveBatch(), 1);
    });
    const slow = new ShardLedger({ ...services, store, log }, shard);
    t.is(await slow.moveBatch(), 1);
    let reads = 0;
    const read = store.intents.read.bind(store.intents);
    store.intents.read = async (at) => {
      reads += 1;
      return await read(at);
    };
    await charge(services, account, 1n);
    t.is(await slow.moveBatch(), 1);
    t.is(reads, 1);
  },
);

test.serial('intents that two readers add concurrently are both kept', async (t) => {
  const { ledger } = await useServices(t);
  await ledger.intents.add(0, ['one']);
  await Promise.all([ledger.intents.add(0, ['two', 'one']), ledger.intents.add(0, ['three'])]);
  t.deepEqual([...(await ledger.intents.read(0))].toSorted(), ['one', 'three', 'two']);
  await ledger.intents.replace(0, ['four']);
  t.deepEqual([...(await ledger.intents.read(0))], ['four']);
});

test.serial('if the accounts of a batch already have stored intents, the batch writes none', async (t) => {
  const services = await useServices(t);
  const account = await createStored(services);
  const shard = shardOf(account.id);
  const store = new LedgerStore(services.mongo.db);
  const written: string[][] = [];
  const add = store.intents.add.bind(store.intents);
  store.intents.add = async (at, accountIds) => {
    written.push([...accountIds]);
    await add(at, accountIds);
  };
  const open = () => new ShardLedger({ ...services, store, log: createLogger('test', 'silent') }, shard);
  const first = open();
  for (let i = 0; i < 3; i++) {
    await charge(services, account, 1n);
    t.is(await first.moveBatch(), 1);
  }
  // The reader that first wrote the account has already stored its intent.
  t.deepEqual(written, []);
  const other = await services.createAccount({ shard });
  t.is(await first.moveBatch(), 1);
  t.deepEqual(written, [[other.id]]);
  const second = open();
  await charge(services, account, 1n);
  t.is(await second.moveBatch(), 1);
  t.is(written.length, 1);
});
