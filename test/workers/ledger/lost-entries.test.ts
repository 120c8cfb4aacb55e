import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { runAdmission } from '../../../shared/billing/admit-script.ts';
import { runRefill } from '../../../shared/billing/refill-script.ts';
import { runSettlement } from '../../../shared/settlement/settle-script.ts';
import { LedgerStore, toLedgerDocument } from '../../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/redis/redis-keys.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { ShardLedger } from '../../../workers/ledger/shard-ledger.ts';
import { admission, readEntries, usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { takeRedisSnapshot } from '../../support/redis-snapshot.ts';
import { waitFor } from '../../support/wait-for.ts';

/**
 * The power fails while a reader moves a batch from Redis to MongoDB. MongoDB has every completed step; Redis lost its
 * last second. Every ledger entry must then be included in the balances, both in MongoDB and in Redis.
 */

interface TestAccount {
  readonly id: string;
  readonly keyHash: string;
}

async function useBooks(t: ExecutionContext): Promise<LedgerServices> {
  const books = await openLedgerServices();
  t.teardown(() => books.close());
  return books;
}

/** An account of 1 000 nano-roubles that is already in MongoDB. No reader runs. */
async function createStored(books: LedgerServices): Promise<TestAccount> {
  const account = await books.createAccount({ balanceNano: 1_000n });
  await books.moveAll();
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

async function charge(books: LedgerServices, account: TestAccount, costNano: bigint): Promise<void> {
  await settle(books, account, await admit(books, account, costNano), costNano);
}

/** The steps that write a batch to MongoDB, in order. */
const steps = [
  'insertEntries',
  'insertLogs',
  'insertRefillLogs',
  'addToAccounts',
  'addToStats',
  'writeCheckpoint',
] as const satisfies readonly (keyof LedgerStore)[];
type Step = (typeof steps)[number];

/** Creates a store with the given step replaced. */
function replaceStep<S extends Step>(books: LedgerServices, step: S, run: LedgerStore[S]): LedgerStore {
  return Object.assign(new LedgerStore(books.mongo.db), { [step]: run });
}

/** Runs a reader that fails at this step while it moves the entries to MongoDB. */
async function crashAt(books: LedgerServices, step: Step): Promise<void> {
  let isReached = false;
  const store = replaceStep(books, step, async () => {
    isReached = true;
    throw new Error('power failure');
  });
  const reader = books.startReader(store);
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
  books: LedgerServices,
  { id }: TestAccount,
  balance: bigint,
): Promise<void> {
  const reader = books.startReader();
  const readAll = async () => {
    const stream = await books.redis.xlen(redisKeys.ledgerStream(shardOf(id)));
    const inLedger = await sumLedger(books, id);
    const inMongo = (await books.accounts.findById(id))?.balanceNano;
    return { stream, inLedger, inMongo, inRedis: (await books.readHash(id))['bal'] };
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
      const books = await useBooks(t);
      const account = await createStored(books);
      const rollBack = await takeRedisSnapshot(books.redis);
      await charge(books, account, 100n);
      await crashAt(books, step);
      await rollBack();
      await charge(books, account, 5n);
      // If the reader died before the first row was written, MongoDB does not have the charge, and it is refunded.
      await expectEverywhere(t, books, account, step === 'insertEntries' ? 995n : 895n);
    },
  );
}

test.serial(
  'a charge lost by Redis after MongoDB stored its sums is not refunded, even if no charge follows it',
  async (t) => {
    const books = await useBooks(t);
    const account = await createStored(books);
    const rollBack = await takeRedisSnapshot(books.redis);
    await charge(books, account, 100n);
    await crashAt(books, 'writeCheckpoint');
    await rollBack();
    t.is((await books.readHash(account.id))['bal'], '1000');
    await expectEverywhere(t, books, account, 900n);
    await charge(books, account, 7n);
    await expectEverywhere(t, books, account, 893n);
  },
);

test.serial('the stream of a shard is advanced once for all restored accounts', async (t) => {
  const books = await useBooks(t);
  const first = await createStored(books);
  const shard = shardOf(first.id);
  const others = [await books.createAccount({ shard }), await books.createAccount({ shard })];
  await books.moveAll();
  const rollBack = await takeRedisSnapshot(books.redis);
  // Charges the accounts in the order in which MongoDB returns them: each has a later position than the one before.
  for (const account of [first, ...others].toSorted((one, other) => (one.id < other.id ? -1 : 1)))
    await charge(books, account, 100n);
  await crashAt(books, 'writeCheckpoint');
  await rollBack();
  const countAdded = async (): Promise<number> => {
    const info = (await books.redis.xinfo('STREAM', redisKeys.ledgerStream(shard))) as unknown[];
    return Number(info[info.indexOf('entries-added') + 1]);
  };
  const before = await countAdded();
  const log = createLogger('test', 'silent');
  t.is(await new ShardLedger({ ...books, store: books.ledger, log }, shard).moveBatch(), 0);
  t.is((await countAdded()) - before, 1);
  await expectEverywhere(t, books, first, 900n);
});

test.serial('only a limited number of accounts is queried in Redis at a time', async (t) => {
  const books = await useBooks(t);
  const checkpoint = { ms: 1, seq: 0 };
  await books.ledger.writeCheckpoint(0, checkpoint);
  const ids = Array.from({ length: 3_000 * shardCount }, (_, i) => `account-${i}`);
  books.accounts.findAppliedSince = async () => new Map(ids.map((id) => [id, checkpoint]));
  let queries = 0;
  let waiting = 0;
  let maxWaiting = 0;
  books.redis.exists = (async () => {
    queries += 1;
    waiting += 1;
    maxWaiting = Math.max(maxWaiting, waiting);
    await setImmediate();
    waiting -= 1;
    return 0;
  }) as never;
  const log = createLogger('test', 'silent');
  t.is(await new ShardLedger({ ...books, store: books.ledger, log }, 0).moveBatch(), 0);
  t.is(queries, ids.filter((id) => shardOf(id) === 0).length);
  t.is(maxWaiting, 1_000);
});

for (const step of ['insertRefillLogs', 'writeCheckpoint'] as const) {
  test.serial(`a redemption lost by Redis is credited after a reader died before ${step}`, async (t) => {
    const books = await useBooks(t);
    const account = await createStored(books);
    const rollBack = await takeRedisSnapshot(books.redis);
    const event = createRefillEvent(randomUUID(), account.id, 'code', 'CODE');
    await runRefill(books.redis, { amountNano: 50n, freeRequests: 0, event });
    await crashAt(books, step);
    await rollBack();
    await charge(books, account, 5n);
    await expectEverywhere(t, books, account, 1_045n);
  });
}

test.serial(
  'charges once for a request that runs again because Redis lost its settlement, even if another charge follows',
  async (t) => {
    const books = await useBooks(t);
    const account = await createStored(books);
    const image = await admit(books, account, 100n);
    const rollBack = await takeRedisSnapshot(books.redis);
    await settle(books, account, image, 100n);
    await crashAt(books, 'insertLogs');
    await rollBack();
    await settle(books, account, image, 100n);
    await charge(books, account, 5n);
    await expectEverywhere(t, books, account, 895n);
  },
);

test.serial(
  'charges once for requests that ran again, even if restoring one of their accounts fails at first',
  async (t) => {
    const books = await useBooks(t);
    const one = await createStored(books);
    const other = await books.createAccount({ balanceNano: 1_000n, shard: shardOf(one.id) });
    await books.moveAll();
    const runs = [
      { account: one, requestId: await admit(books, one, 100n) },
      { account: other, requestId: await admit(books, other, 100n) },
    ];
    const rollBack = await takeRedisSnapshot(books.redis);
    const settleAll = async (): Promise<void> => {
      for (const { account, requestId } of runs) await settle(books, account, requestId, 100n);
    };
    await settleAll();
    await books.moveAll();
    await rollBack();
    await settleAll();
    const open = () =>
      new ShardLedger(
        { ...books, store: books.ledger, log: createLogger('test', 'silent') },
        shardOf(one.id),
      );
    const ledger = open();
    t.is(await ledger.moveBatch(), 0, 'what Redis lost is restored first');
    const { hotAccounts } = books;
    const reload = hotAccounts.reload.bind(hotAccounts);
    hotAccounts.reload = async () => {
      hotAccounts.reload = reload;
      throw new Error('Redis is away');
    };
    await t.throwsAsync(ledger.moveBatch(), { message: 'Redis is away' });
    await open().moveBatch();
    await expectEverywhere(t, books, one, 900n);
    await expectEverywhere(t, books, other, 900n);
  },
);

test.serial(
  'if the last charge of an account is lost, earlier charges that are still in the stream are applied',
  async (t) => {
    const books = await useBooks(t);
    const account = await createStored(books);
    await charge(books, account, 10n);
    const rollBack = await takeRedisSnapshot(books.redis);
    await charge(books, account, 200n);
    // Rows are inserted in no fixed order: here the row of the second charge exists without the first.
    const entries = await readEntries(books.redis, account.id);
    await books.ledger.insertEntries(entries.slice(1).map(toLedgerDocument));
    await rollBack();
    await books.hotAccounts.reload(account.id);
    t.is((await books.readHash(account.id))['bal'], '790');
    await expectEverywhere(t, books, account, 790n);
  },
);

test.serial(
  'if Redis loses data while a batch is written to MongoDB, the reader detects it when it trims the batch',
  async (t) => {
    const books = await useBooks(t);
    const account = await createStored(books);
    const rollBack = await takeRedisSnapshot(books.redis);
    await charge(books, account, 100n);
    let isRolledBack = false;
    const store = replaceStep(books, 'writeCheckpoint', async (...args) => {
      await books.ledger.writeCheckpoint(...args);
      if ((await sumLedger(books, account.id)) === 900n) {
        await rollBack();
        isRolledBack = true;
      }
    });
    const reader = books.startReader(store);
    await waitFor('Redis to be rolled back', () => isRolledBack, 15_000);
    const isRestored = async (): Promise<boolean> => (await books.readHash(account.id))['bal'] === '900';
    await t.notThrowsAsync(waitFor('the account to be restored', isRestored, 15_000));
    await reader.stop();
  },
);

test.serial(
  'if another reader moved entries in between, a reader checks the shard again before it continues',
  async (t) => {
    const books = await useBooks(t);
    const account = await createStored(books);
    const shard = shardOf(account.id);
    const log = createLogger('test', 'silent');
    const fast = new ShardLedger({ ...books, store: books.ledger, log }, shard);
    await charge(books, account, 1n);
    // Between the checkpoint and the trim of the slow reader, the fast reader moves the same batch and another one.
    let isOvertaken = false;
    const store = replaceStep(books, 'writeCheckpoint', async (...args) => {
      await books.ledger.writeCheckpoint(...args);
      if (isOvertaken) return;
      isOvertaken = true;
      t.is(await fast.moveBatch(), 1);
      await charge(books, account, 1n);
      t.is(await fast.moveBatch(), 1);
    });
    const slow = new ShardLedger({ ...books, store, log }, shard);
    t.is(await slow.moveBatch(), 1);
    let reads = 0;
    const read = store.intents.read.bind(store.intents);
    store.intents.read = async (at) => {
      reads += 1;
      return await read(at);
    };
    await charge(books, account, 1n);
    t.is(await slow.moveBatch(), 1);
    t.is(reads, 1);
  },
);

test.serial('intents that two readers add concurrently are both kept', async (t) => {
  const { ledger } = await useBooks(t);
  await ledger.intents.add(0, ['one']);
  await Promise.all([ledger.intents.add(0, ['two', 'one']), ledger.intents.add(0, ['three'])]);
  t.deepEqual([...(await ledger.intents.read(0))].toSorted(), ['one', 'three', 'two']);
  await ledger.intents.replace(0, ['four']);
  t.deepEqual([...(await ledger.intents.read(0))], ['four']);
});

test.serial('if the accounts of a batch already have stored intents, the batch writes none', async (t) => {
  const books = await useBooks(t);
  const account = await createStored(books);
  const shard = shardOf(account.id);
  const store = new LedgerStore(books.mongo.db);
  const written: string[][] = [];
  const add = store.intents.add.bind(store.intents);
  store.intents.add = async (at, accountIds) => {
    written.push([...accountIds]);
    await add(at, accountIds);
  };
  const open = () => new ShardLedger({ ...books, store, log: createLogger('test', 'silent') }, shard);
  const first = open();
  for (let i = 0; i < 3; i++) {
    await charge(books, account, 1n);
    t.is(await first.moveBatch(), 1);
  }
  // The reader that first wrote the account has already stored its intent.
  t.deepEqual(written, []);
  const other = await books.createAccount({ shard });
  t.is(await first.moveBatch(), 1);
  t.deepEqual(written, [[other.id]]);
  const second = open();
  await charge(books, account, 1n);
  t.is(await second.moveBatch(), 1);
  t.is(written.length, 1);
});
