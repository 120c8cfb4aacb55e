import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { createRefillEvent } from '../../../shared/ledger/usage-event.ts';
import { DeadLetters, type DeadLetter } from '../../../shared/ledger/dead-letters-store.ts';
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

test('entries from before what was remembered as trimmed are taken from the stream all the same', async (t) => {
  const books = await openBooks();
  t.teardown(() => books.close());
  const { redis } = books;
  const { id } = await books.createAccount({ balanceNano: 5n });
  // As after a Redis that came back with less than MongoDB has: told how far MongoDB is, with entries from before.
  const later = `${Date.now() + 60_000}-0`;
  await redis.set(redisKeys.ledgerTrimmed(shardOf(id)), later);
  await books.moveAll();
  t.is((await books.accounts.findById(id))?.balanceNano, 5n);
  t.is(await redis.get(redisKeys.ledgerTrimmed(shardOf(id))), later);
});

test('a worker that alone does not reach MongoDB leaves the ledger to those that do', async (t) => {
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
  await waitFor('it to have every shard', async () => {
    const holders = await Promise.all(shards.map((shard) => redis.get(redisKeys.ledgerLease(shard))));
    return holders.every((holder) => holder === workerId);
  });

  const reader = books.startReader();
  t.teardown(() => reader.stop());
  const isAtRest = async (): Promise<boolean> => (await accounts.findById(id))?.balanceNano === 5n;
  await waitFor('the money to be at rest', isAtRest, 15_000);
  t.not(await redis.get(redisKeys.ledgerLease(shardOf(id))), workerId);
});

/** As pino writes it. */
const errorLevel = 50;

/** Runs a reader that logs, until it has moved what can be moved. */
async function readAll(t: ExecutionContext, books: Books) {
  const { lines, log } = captureLog();
  const faults = new Faults(log);
  const { redis, accounts, hotAccounts, ledger: store } = books;
  const leases = new ShardLeases(redis, randomUUID(), redisKeys.ledgerLease);
  const reader = startLedgerReader({ redis, store, accounts, hotAccounts, leases, faults, log });
  t.teardown(() => reader.stop());
  return { faults, errors: () => lines.filter(({ level }) => level === errorLevel) };
}

test('an entry that cannot be read is set aside with an error, those behind it are moved, and it can be put back', async (t) => {
  const books = await openBooks();
  t.teardown(() => books.close());
  const { redis, accounts } = books;
  const { id } = await books.createAccount({ balanceNano: 5n });
  const shard = shardOf(id);
  const stream = redisKeys.ledgerStream(shard);
  await books.moveAll();
  const event = JSON.stringify(createRefillEvent('a refill', id, 'test'));
  const broken = await redis.xadd(
    stream,
    '*',
    'kind',
    'refill',
    'amount',
    'many',
    'free',
    '0',
    'event',
    event,
  );
  const fields = [
    'kind',
    'refill',
    'amount',
    '7',
    'free',
    '0',
    'event',
    event.replace('a refill', 'another'),
  ];
  await redis.xadd(stream, '*', ...fields);

  const { faults, errors } = await readAll(t, books);
  const isAtRest = (balance: bigint) => async () => (await accounts.findById(id))?.balanceNano === balance;
  await waitFor('the entry behind it to be at rest', isAtRest(12n));
  await waitFor('the process to say so', () => faults.count === 1);
  t.is(await redis.xlen(stream), 0);
  const letters = new DeadLetters(redis);
  const found: DeadLetter[] = [];
  for await (const one of letters.list()) found.push(one);
  const [letter] = found;
  t.is(found.length, 1);
  t.like(letter, { shard, entry: broken, accountId: id });
  t.is(letter!.fields['amount'], 'many');
  t.like(errors(), [
    { shard, entry: broken, msg: 'a ledger entry cannot be read and was set aside' },
    { part: `reading the ledger of shard ${shard}` },
  ]);

  // As after an upgrade to a release that can read it.
  await redis.xdel(redisKeys.ledgerDead(shard), letter!.id);
  const mended = ['kind', 'refill', 'amount', '9', 'free', '0', 'event', event];
  const id2 = await redis.xadd(redisKeys.ledgerDead(shard), '*', 'entry', broken!, 'reason', 'x', ...mended);
  t.true(await letters.putBack({ ...letter!, id: id2! }));
  t.false(await letters.putBack({ ...letter!, id: id2! }), 'it is put back once');
  await waitFor('it to be at rest', isAtRest(21n));
  await waitFor('the process to be well', () => faults.count === 0);
});

test('an entry of a later release waits for a worker of that release', async (t) => {
  const books = await openBooks();
  t.teardown(() => books.close());
  const { redis } = books;
  const { id } = await books.createAccount({ balanceNano: 5n });
  const shard = shardOf(id);
  await books.moveAll();
  const event = JSON.stringify({ ...createRefillEvent('a refill', id, 'test'), v: 2 });
  await redis.xadd(redisKeys.ledgerStream(shard), '*', 'kind', 'refill', 'amount', '7', 'event', event);
  const { faults, errors } = await readAll(t, books);
  await waitFor('the process to say so', () => faults.count === 1);
  t.regex(String(errors()[0]!.msg), /has version 2; a worker of a later release moves it/);
  t.is(await redis.xlen(redisKeys.ledgerStream(shard)), 1);
  t.is(await redis.xlen(redisKeys.ledgerDead(shard)), 0);
});
