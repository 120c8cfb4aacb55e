import { randomUUID } from 'node:crypto';
import test from 'ava';
import { runAdmission } from '../../../shared/money/admit-script.ts';
import { runRefill } from '../../../shared/accounts/refill-script.ts';
import { runSettlement } from '../../../shared/work/settlement/settle-script.ts';
import { createRefillEvent, isAfter } from '../../../shared/ledger/usage-event.ts';
import { toLedgerDocument } from '../../../shared/ledger/ledger-store.ts';
import { redisKeys, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { flushAll } from '../../support/all-of-redis.ts';
import { admission, charge, readEntries, usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { waitFor } from '../../support/wait-for.ts';

let services: LedgerServices;

test.beforeEach(async () => {
  services = await openLedgerServices();
});
test.afterEach.always(async () => {
  await services.close();
});

async function refill(id: string, amountNano: bigint, code: string | null = null): Promise<void> {
  const event = createRefillEvent(randomUUID(), id, code === null ? 'test' : 'code', code);
  await runRefill(services.redis, { amountNano, freeRequests: 1, event });
}

/** The fields of an account that a restore must preserve: all but the time of its last use and its rate window. */
async function readPersistentFields(id: string): Promise<Record<string, string | undefined>> {
  const { last: _last, win: _win, ...persistent } = await services.readHash(id);
  return persistent;
}

/** The account's totals in the settled ledger. */
async function sumSettled(id: string): Promise<{ balance: bigint; charges: number[] }> {
  const rows = await services.ledger.entries
    .find({ accountId: id })
    .sort({ streamMs: 1, streamSeq: 1 })
    .toArray();
  return {
    balance: rows.reduce((sum, row) => sum + row.amountNano, 0n),
    charges: rows.filter((row) => row.kind === 'charge').map((row) => row.ordinal!),
  };
}

test.serial(
  'an account that is missing only from Redis is restored exactly, from the settled ledger, the stream and the reservations',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000n, freeRequests: 3 });
    await charge(services.redis, account, 10n);
    await refill(account.id, 50n, 'CODE-1');
    await services.moveAll();
    await charge(services.redis, account, 7n);
    await refill(account.id, 20n, 'CODE-2');
    await refill(account.id, -5n);
    const open = admission(account.id, { keyHash: account.keyHash, fixedNano: 100n });
    await runAdmission(services.redis, open);
    const free = admission(account.id, { keyHash: account.keyHash, fixedNano: 100n, freeAllowed: true });
    await runAdmission(services.redis, free);
    const before = await readPersistentFields(account.id);
    t.like(before, { bal: '1048', added: '1070', res: '100', fres: '1', charges: '2', codes: '2' });
    await services.redis.del(redisKeys.account(account.id));
    await services.hotAccounts.load(account.id);
    t.deepEqual(await readPersistentFields(account.id), before);
    const used = await runSettlement(services.redis, usageEvent(account.id, free.requestId), 9n);
    t.true(used.free);
    t.is((await runSettlement(services.redis, usageEvent(account.id, open.requestId), 40n)).costNano, 40n);
    t.like(await readPersistentFields(account.id), { bal: '1008', res: '0', fres: '0', charges: '4' });
    await services.moveAll();
    t.is((await sumSettled(account.id)).balance, 1_008n);
    t.deepEqual((await sumSettled(account.id)).charges, [1, 2, 3, 4]);
  },
);

test.serial('loading does not replace an account that is in Redis', async (t) => {
  const account = await services.createAccount();
  await services.redis.hset(redisKeys.account(account.id), 'bal', '1234');
  await services.hotAccounts.load(account.id);
  t.like(await readPersistentFields(account.id), { bal: '1234' });
});

test.serial(
  'an account that is repeatedly lost while its entries move to MongoDB is exact each time',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000_000n });
    const reader = services.startReader();
    let spent = 0n;
    for (let i = 1; i <= 150; i++) {
      await charge(services.redis, account, BigInt(i));
      spent += BigInt(i);
      await services.redis.del(redisKeys.account(account.id));
      // As when two processes look it up at the same time.
      await Promise.all([services.hotAccounts.load(account.id), services.hotAccounts.load(account.id)]);
      const { bal, charges, res } = await readPersistentFields(account.id);
      if (bal !== String(1_000_000n - spent) || charges !== String(i) || res !== '0')
        t.fail(`after ${i} charges of ${spent}: balance ${bal}, charges ${charges}, reserved ${res}`);
    }
    await waitFor('the ledger', async () => (await sumSettled(account.id)).charges.length === 150);
    await reader.stop();
    t.is((await sumSettled(account.id)).balance, 1_000_000n - spent);
    t.is((await services.accounts.findById(account.id))?.balanceNano, 1_000_000n - spent);
  },
);

test.serial(
  'after Redis loses its data, accounts are restored from MongoDB, and later charges apply',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000n });
    await charge(services.redis, account, 10n);
    await refill(account.id, 50n, 'CODE-1');
    await services.moveAll();
    const before = await readPersistentFields(account.id);
    const checkpoint = await services.ledger.readCheckpoint(shardOf(account.id));
    await flushAll(services.redis);
    await services.hotAccounts.load(account.id);
    t.deepEqual(await readPersistentFields(account.id), before);
    await charge(services.redis, account, 3n);
    const [entry] = await readEntries(services.redis, account.id);
    t.true(isAfter(entry!.streamId, checkpoint));
    await services.moveAll();
    t.is((await services.accounts.findById(account.id))?.balanceNano, 1_037n);
    t.deepEqual(await sumSettled(account.id), { balance: 1_037n, charges: [1, 2] });
  },
);

test.serial("future entries are not mistaken for applied ones if Redis's clock is behind", async (t) => {
  const account = await services.createAccount({ balanceNano: 1_000n });
  await charge(services.redis, account, 10n);
  await services.moveAll();
  // As if everything had been written by a machine whose clock is an hour ahead.
  const ahead = { ms: Date.now() + 3_600_000, seq: 4 };
  await services.ledger.writeCheckpoint(shardOf(account.id), ahead);
  await services.mongo.db
    .collection('accounts')
    .updateOne({ _id: account.id as never }, { $set: { appliedMs: ahead.ms, appliedSeq: ahead.seq } });
  await flushAll(services.redis);
  await services.hotAccounts.load(account.id);
  await charge(services.redis, account, 3n);
  await charge(services.redis, account, 4n);
  const entries = await readEntries(services.redis, account.id);
  t.true(entries.every((entry) => isAfter(entry.streamId, ahead)));
  await services.moveAll();
  t.is((await services.accounts.findById(account.id))?.balanceNano, 983n);
  t.deepEqual((await sumSettled(account.id)).charges, [1, 2, 3]);
});

test.serial(
  'if a reader crashed before it summed its rows, they are summed once, with or without their entries in Redis',
  async (t) => {
    const account = await services.createAccount({ balanceNano: 1_000n });
    await services.moveAll();
    await charge(services.redis, account, 10n);
    await charge(services.redis, account, 20n);
    // The ledger reader died right after its first write to MongoDB.
    await services.ledger.insertEntries(
      (await readEntries(services.redis, account.id)).map(toLedgerDocument),
    );
    await services.redis.del(redisKeys.account(account.id));
    await services.hotAccounts.load(account.id);
    t.like(await readPersistentFields(account.id), { bal: '970', charges: '2' });
    await flushAll(services.redis);
    await Promise.all([services.hotAccounts.load(account.id), services.hotAccounts.load(account.id)]);
    t.like(await readPersistentFields(account.id), { bal: '970', charges: '2' });
    await charge(services.redis, account, 1n);
    await services.moveAll();
    t.is((await services.accounts.findById(account.id))?.balanceNano, 969n);
    t.deepEqual(await sumSettled(account.id), { balance: 969n, charges: [1, 2, 3] });
  },
);

/**
 * An account whose state in MongoDB is newer than in Redis, because Redis came back with an older account and stream.
 */
async function rollBack(): Promise<{ id: string; keyHash: string }> {
  const account = await services.createAccount({ balanceNano: 1_000n });
  await charge(services.redis, account, 1n);
  await services.moveAll();
  const keys = [
    redisKeys.account(account.id),
    redisKeys.ledgerStream(shardOf(account.id)),
    redisKeys.ledgerTrimmed(shardOf(account.id)),
  ];
  const dumps = await Promise.all(keys.map((key) => services.redis.dumpBuffer(key)));
  await charge(services.redis, account, 100n);
  await charge(services.redis, account, 200n);
  await services.moveAll();
  for (const [i, key] of keys.entries()) await services.redis.restore(key, 0, dumps[i]!, 'REPLACE');
  return account;
}

const restoreTimeoutMs = 15_000;

async function waitForBalance(id: string, balance: string): Promise<void> {
  const isRestored = async (): Promise<boolean> => (await services.readHash(id))['bal'] === balance;
  await waitFor('the account to be restored', isRestored, restoreTimeoutMs);
}

test.serial('after Redis comes back older than MongoDB, its accounts are restored', async (t) => {
  const account = await rollBack();
  t.like(await readPersistentFields(account.id), { bal: '999', charges: '1' });
  t.is((await services.accounts.findById(account.id))?.balanceNano, 699n);
  const reader = services.startReader();
  await waitForBalance(account.id, '699');
  await charge(services.redis, account, 5n);
  await waitFor('the charge', async () => (await sumSettled(account.id)).charges.length === 4);
  await reader.stop();
  t.deepEqual(await sumSettled(account.id), { balance: 694n, charges: [1, 2, 3, 4] });
  t.is((await services.accounts.findById(account.id))?.balanceNano, 694n);
});

test.serial(
  'Redis coming back older than MongoDB is detected even if another account was loaded first',
  async (t) => {
    const account = await rollBack();
    await services.createAccount({ shard: shardOf(account.id) });
    const reader = services.startReader();
    t.teardown(() => reader.stop());
    await t.notThrowsAsync(waitForBalance(account.id, '699'));
  },
);

test.serial(
  'Redis coming back older than MongoDB is detected even if a request was settled first',
  async (t) => {
    const account = await rollBack();
    await charge(services.redis, account, 5n);
    const reader = services.startReader();
    t.teardown(() => reader.stop());
    await t.notThrowsAsync(waitForBalance(account.id, '694'));
  },
);
