import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/redis/redis-keys.ts';
import { createLogger } from '../../../shared/runtime/logger.ts';
import { Faults } from '../../../shared/storage/faults.ts';
import { openMongo } from '../../../shared/storage/mongo-client.ts';
import { startLedgerReader } from '../../../workers/ledger/ledger-reader.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { openBooks, type Books } from '../../support/books.ts';
import { captureLog } from '../../support/captured-log.ts';
import { findStablePort } from '../../support/stable-port.ts';
import { waitFor } from '../../support/wait-for.ts';

test('entries before the stored trim position are still read from the stream', async (t) => {
  const books = await openBooks();
  t.teardown(() => books.close());
  const { redis } = books;
  const { id } = await books.createAccount({ balanceNano: 5n });
  // As after a Redis that came back with less than MongoDB has: it has MongoDB's position, and earlier entries.
  const later = `${Date.now() + 60_000}-0`;
  await redis.set(redisKeys.ledgerTrimmed(shardOf(id)), later);
  await books.moveAll();
  t.is((await books.accounts.findById(id))?.balanceNano, 5n);
  t.is(await redis.get(redisKeys.ledgerTrimmed(shardOf(id))), later);
});

test('a single worker that cannot reach MongoDB leaves the ledger to those that can', async (t) => {
  const books = await openBooks();
  t.teardown(() => books.close());
  const log = createLogger('test', 'silent');
  const unreachable = openMongo(`mongodb://127.0.0.1:${await findStablePort()}/`, log);
  t.teardown(() => unreachable.close());
  const workerId = randomUUID();
  const { redis, accounts, hotAccounts } = books;
  const { id } = await books.createAccount({ balanceNano: 5n });
  const cutOff = startLedgerReader({
    redis,
    store: new LedgerStore(unreachable.db),
    accounts,
    hotAccounts,
    leases: new ShardLeases(redis, workerId, redisKeys.ledgerLease),
    faults: new Faults(log),
    log,
  });
  t.teardown(() => cutOff.stop());
  const shards = Array.from({ length: shardCount }, (_, shard) => shard);
  await waitFor('the worker to hold every shard', async () => {
    const holders = await Promise.all(shards.map((shard) => redis.get(redisKeys.ledgerLease(shard))));
    return holders.every((holder) => holder === workerId);
  });

  const reader = books.startReader();
  t.teardown(() => reader.stop());
  const isStored = async (): Promise<boolean> => (await accounts.findById(id))?.balanceNano === 5n;
  await waitFor('the balance to be in MongoDB', isStored, 15_000);
  t.not(await redis.get(redisKeys.ledgerLease(shardOf(id))), workerId);
});

/** As pino writes it. */
const errorLevel = 50;

/** Starts a reader with a captured log. It stops with the test. */
async function startLoggedReader(t: ExecutionContext, books: Books) {
  const { lines, log } = captureLog();
  const faults = new Faults(log);
  const { redis, accounts, hotAccounts, ledger: store } = books;
  const leases = new ShardLeases(redis, randomUUID(), redisKeys.ledgerLease);
  const reader = startLedgerReader({ redis, store, accounts, hotAccounts, leases, faults, log });
  t.teardown(() => reader.stop());
  return { faults, errors: () => lines.filter(({ level }) => level === errorLevel) };
}

test('an unreadable entry is logged once, with a remedy, and later entries of its shard wait behind it', async (t) => {
  const books = await openBooks();
  t.teardown(() => books.close());
  const { redis, accounts } = books;
  const { id } = await books.createAccount({ balanceNano: 5n });
  const shard = shardOf(id);
  const stream = redisKeys.ledgerStream(shard);
  await books.moveAll();
  const event = createRefillEvent('a refill', id, 'test');
  const add = (v: number): Promise<string | null> =>
    redis.xadd(stream, '*', 'kind', 'refill', 'amount', '7', 'event', JSON.stringify({ ...event, v }));
  const broken = await add(2);
  await add(1);

  const { faults, errors } = await startLoggedReader(t, books);
  await waitFor('the process to report a fault', () => faults.count === 1);
  t.is((await accounts.findById(id))?.balanceNano, 5n);
  await redis.xdel(stream, broken!);
  await waitFor(
    'the other entry to be in MongoDB',
    async () => (await accounts.findById(id))?.balanceNano === 12n,
  );
  await waitFor('the process to be healthy', () => faults.count === 0);
  t.is(errors().length, 1);
  t.regex(
    String(errors()[0]!['msg']),
    /entry \d+-\d+ has unknown version 2\. If a later release wrote it, run a worker of/,
  );
});
