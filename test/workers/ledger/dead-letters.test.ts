import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { DeadLetters, maxDeadLetters, type DeadLetter } from '../../../shared/ledger/dead-letters-store.ts';
import { LedgerStore } from '../../../shared/ledger/ledger-store.ts';
import { createRefillEvent, tryParseLedgerEntry, unknownModel } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import type { RedisClient } from '../../../shared/platform/redis/redis-client.ts';
import { Faults } from '../../../workers/reporting/faults.ts';
import { startLedgerReader } from '../../../workers/ledger/ledger-reader.ts';
import { ShardLedger } from '../../../workers/ledger/shard-ledger.ts';
import { ShardLeases } from '../../../workers/ledger/shard-leases.ts';
import { usageEvent } from '../../support/billing.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';
import { captureLog } from '../../support/captured-log.ts';
import { waitFor } from '../../support/wait-for.ts';

/** The level of errors as pino writes it. */
const errorLevel = 50;

async function openStores(t: ExecutionContext) {
  const services = await openLedgerServices();
  t.teardown(() => services.close());
  const { id } = await services.createAccount({ balanceNano: 1_000n });
  await services.moveAll();
  const shard = shardOf(id);
  const { lines, log } = captureLog();
  const faults = new Faults(log);
  const { redis, ledger: store, accounts, hotAccounts } = services;
  const dependencies = { redis, store, accounts, hotAccounts, log };
  return {
    services,
    redis,
    id,
    shard,
    faults,
    dependencies,
    letters: new DeadLetters(redis),
    errors: () => lines.filter(({ level }) => level === errorLevel),
    add: (...fields: string[]) => redis.xadd(redisKeys.ledgerStream(shard), '*', ...fields),
    move: () => new ShardLedger(dependencies, shard).moveBatch(),
    startReader: (): void => {
      const leases = new ShardLeases(redis, randomUUID(), redisKeys.ledgerLease);
      const reader = startLedgerReader({ ...dependencies, leases, faults });
      t.teardown(() => reader.stop());
    },
  };
}

async function listLetters(letters: DeadLetters): Promise<DeadLetter[]> {
  const found: DeadLetter[] = [];
  for await (const letter of letters.list()) found.push(letter);
  return found;
}

/** The account's amounts in MongoDB. */
async function readFromMongo(services: LedgerServices, id: string) {
  const { balanceNano, totalAddedNano, freeRequests, charges, codes } =
    (await services.accounts.findById(id))!;
  return { balanceNano, totalAddedNano, freeRequests, charges, codes };
}

/** The account's amounts in Redis after it was restored from MongoDB and the ledger stream. */
async function readRestored({ redis, hotAccounts }: LedgerServices, id: string) {
  await redis.del(redisKeys.account(id));
  await hotAccounts.load(id);
  const hash = await redis.hgetall(redisKeys.account(id));
  return {
    balanceNano: BigInt(hash['bal']!),
    totalAddedNano: BigInt(hash['added']!),
    freeRequests: Number(hash['free']),
    charges: Number(hash['charges']),
    codes: Number(hash['codes']),
  };
}

const chargeOf = (id: string, event: string, more: Readonly<Record<string, string>> = {}): string[] =>
  Object.entries({
    kind: 'charge',
    account: id,
    id: randomUUID(),
    cost: '7',
    shortfall: '0',
    free: '0',
    ordinal: '1',
    event,
    ...more,
  }).flat();

test('if the event of an entry is from a later release, the amounts of the entry are applied and the entry is copied to the dead letters', async (t) => {
  const { services, id, add, move, letters, errors } = await openStores(t);
  const requestId = randomUUID();
  const event = JSON.stringify({ ...usageEvent(id, requestId), v: 2 });
  const fields = chargeOf(id, event, { id: requestId });
  await add(...fields);
  t.like(await readRestored(services, id), { balanceNano: 993n, charges: 1 });
  await move();
  t.like(await readFromMongo(services, id), { balanceNano: 993n, charges: 1 });
  t.like(await readRestored(services, id), { balanceNano: 993n, charges: 1 });
  const row = await services.ledger.logs.findOne({ _id: requestId });
  t.like(row, { model: unknownModel, costNano: 7n, ordinal: 1, promptTokens: 0 });
  t.like(await listLetters(letters), [
    { accountId: id, isCounted: true, reason: 'its event has version 2', fields },
  ]);
  t.is(errors().length, 1);
  t.regex(String(errors()[0]!['msg']), /its amounts are counted/);
});

test('a redeemed code is credited under its refill id even if its event is corrupt', async (t) => {
  const { services, id, add, move, letters } = await openStores(t);
  const refillId = randomUUID();
  const money = ['amount', '500', 'free', '2', 'event', '{"v":1,', 'ordinal', '1'];
  await add('kind', 'refill', 'account', id, 'id', refillId, ...money);
  await move();
  t.like(await readFromMongo(services, id), {
    balanceNano: 1_500n,
    totalAddedNano: 1_500n,
    freeRequests: 2,
    codes: 1,
  });
  t.like(await services.ledger.findEntries([refillId]), [{ kind: 'refill', amountNano: 500n, ordinal: 1 }]);
  t.like(await services.ledger.refillLogs.findOne({ _id: refillId }), { amountNano: 500n, ordinal: 1 });
  t.like(await listLetters(letters), [{ isCounted: true, reason: 'its event is not a JSON object' }]);
});

/** Changes the balance in Redis as a script would, but appends an entry that cannot be parsed. */
async function creditUnreadably(redis: RedisClient, id: string, fields: Readonly<Record<string, string>>) {
  await redis.hincrby(redisKeys.account(id), 'bal', 300);
  await redis.hincrby(redisKeys.account(id), 'added', 300);
  await redis.xadd(redisKeys.ledgerStream(shardOf(id)), '*', ...Object.entries(fields).flat());
}

test('entries that cannot be parsed are skipped and logged once each, and their effect on the balance in Redis is reversed', async (t) => {
  const { services, id, shard, redis, add, letters, errors, faults, startReader } = await openStores(t);
  const refill = createRefillEvent('a refill', id, 'test');
  await creditUnreadably(redis, id, { kind: 'gift', account: id, amount: '300' });
  await add(...chargeOf(id, JSON.stringify({}), { cost: 'seven' }));
  await add('no', 'entry');
  await add('kind', 'refill', 'account', id, 'amount', '20', 'free', '0', 'event', JSON.stringify(refill));
  await redis.hincrby(redisKeys.account(id), 'bal', 20);
  startReader();
  await waitFor('the stream to be empty', async () => {
    return (await redis.xlen(redisKeys.ledgerStream(shard))) === 0;
  });
  t.like(await readFromMongo(services, id), { balanceNano: 1_020n, charges: 0 });
  t.like(await services.readHash(id), { bal: '1020', added: '1020', charges: '0' });
  t.like(await readRestored(services, id), { balanceNano: 1_020n, charges: 0 });
  t.deepEqual(
    (await listLetters(letters)).map(({ reason, isCounted, accountId }) => [reason, isCounted, accountId]),
    [
      ['kind is "gift"', false, id],
      ['cost is "seven"', false, id],
      ['it does not begin with its kind and its account', false, null],
    ],
  );
  const deadLetterErrors = errors().filter(({ msg }) => String(msg).includes('dead letters'));
  t.is(deadLetterErrors.length, 3);
  t.is(faults.count, 0);
});

test('an entry for an account of another shard is not applied', async (t) => {
  const { services, id, shard, move, letters, redis } = await openStores(t);
  const other = await services.createAccount({ balanceNano: 50n, shard: (shard + 1) % shardCount });
  await redis.xadd(redisKeys.ledgerStream(shard), '99999999999999-0', ...chargeOf(other.id, 'x'));
  await move();
  await services.moveSome(shardOf(other.id), 10);
  t.is((await readFromMongo(services, other.id)).balanceNano, 50n);
  t.like(await listLetters(letters), [{ isCounted: false, reason: 'its account belongs to another shard' }]);
  t.like(await readFromMongo(services, id), { balanceNano: 1_000n });
});

for (const [name, change] of Object.entries<object>({
  'an out-of-range time': { at: 9e15 },
  'a string in a numeric field': { cacheReadTokens: '12' },
  'a number in a text field': { details: 5 },
  'another account': { accountId: 'someone' },
})) {
  test(`the amounts of an entry are applied even if its event has ${name}`, async (t) => {
    const { services, id, add, move, letters } = await openStores(t);
    const requestId = randomUUID();
    const event = { ...usageEvent(id, requestId), ...change };
    await add(...chargeOf(id, JSON.stringify(event), { id: requestId }));
    await move();
    t.like(await readFromMongo(services, id), { balanceNano: 993n, charges: 1 });
    t.like(await services.ledger.logs.findOne({ _id: requestId }), { model: unknownModel, costNano: 7n });
    t.is((await listLetters(letters)).length, 1);
  });
}

test('event fields that this release does not know are not stored', async (t) => {
  const { services, id, add, move, letters } = await openStores(t);
  const requestId = randomUUID();
  const event = { ...usageEvent(id, requestId), 'a\0b': 1, $c: 2 };
  await add(...chargeOf(id, JSON.stringify(event), { id: requestId }));
  await move();
  const row = await services.ledger.logs.findOne({ _id: requestId });
  t.is(row?.model, 'm');
  t.false('$c' in row!);
  t.deepEqual(await listLetters(letters), []);
});

test('if a reader dies before it trims the stream, it has not written any dead letters; the next reader writes one per bad entry', async (t) => {
  const { services, id, shard, add, dependencies, letters } = await openStores(t);
  await add(...chargeOf(id, 'damaged'));
  await add('kind', 'gift', 'account', id);
  await add(...chargeOf(id, 'damaged', { ordinal: '2' }));
  for (const step of ['insertEntries', 'addToAccounts', 'writeCheckpoint'] as const) {
    const store = Object.assign(new LedgerStore(services.mongo.db), {
      [step]: () => Promise.reject(new Error('the process is gone')),
    });
    await t.throwsAsync(new ShardLedger({ ...dependencies, store }, shard).moveBatch());
    t.deepEqual(await listLetters(letters), []);
  }
  t.is(await new ShardLedger(dependencies, shard).moveBatch(), 3);
  t.deepEqual(
    (await listLetters(letters)).map(({ isCounted }) => isCounted),
    [true, false, true],
  );
  t.like(await readFromMongo(services, id), { balanceNano: 986n, charges: 2 });
});

test('an entry stays in the stream until it has been copied to the dead letters', async (t) => {
  const { services, id, shard, redis, add, move, letters } = await openStores(t);
  await add('kind', 'gift', 'account', id);
  await redis.set(redisKeys.ledgerDead(shard), 'not a stream');
  await t.throwsAsync(move(), { message: /WRONGTYPE/ });
  t.is(await redis.xlen(redisKeys.ledgerStream(shard)), 1);
  await redis.del(redisKeys.ledgerDead(shard));
  await move();
  t.is((await listLetters(letters)).length, 1);
  t.is(await redis.xlen(redisKeys.ledgerStream(shard)), 0);
  t.is((await readFromMongo(services, id)).balanceNano, 1_000n);
});

test('a shard stops at its maximum number of dead letters, and continues once some are discarded', async (t) => {
  const { services, id, shard, redis, add, letters, faults, errors, startReader } = await openStores(t);
  const values = ['entry', '1-1', 'reason', 'old', 'counted', '1', 'kind', 'gift'];
  for (let n = 0; n < maxDeadLetters; n++) void redis.xadd(redisKeys.ledgerDead(shard), '*', ...values);
  await add('kind', 'gift', 'account', id);
  await add(...chargeOf(id, JSON.stringify({ v: 2 })));
  startReader();
  await waitFor('the process to report that the dead letters are full', () => faults.count === 1);
  t.is((await readFromMongo(services, id)).balanceNano, 1_000n);
  t.regex(String(errors()[0]!['msg']), /1000 dead letters, and 2 more than.*"admin ledger discard"/);
  // The shard may continue before all dead letters are deleted.
  for (const letter of await listLetters(letters)) await letters.delete(letter);
  await waitFor(
    'the shard to continue',
    async () => (await readFromMongo(services, id)).balanceNano === 993n,
  );
  await waitFor('the process to be healthy', () => faults.count === 0);
  await waitFor(
    'both entries to be copied',
    async () => (await redis.xlen(redisKeys.ledgerDead(shard))) === 2,
  );
});

test('the amounts of an entry that is in the stream twice are applied once', async (t) => {
  const { services, id, add, move } = await openStores(t);
  const fields = chargeOf(id, JSON.stringify({ v: 1 }));
  await add(...fields);
  await add(...fields);
  await move();
  t.like(await readFromMongo(services, id), { balanceNano: 993n, charges: 1 });
  t.like(await readRestored(services, id), { balanceNano: 993n, charges: 1 });
});

const damagedText = fc.oneof(
  fc.constantFrom(
    '',
    '-',
    '-1',
    '1.5',
    '1e3',
    ' 7',
    '7 ',
    '٣',
    '0x10',
    '9007199254740992',
    '-9007199254740993',
    '1'.repeat(17),
    '9'.repeat(400),
    'nan',
    'inf',
  ),
  fc.string({ maxLength: 6, unit: 'binary' }),
);
const amount = fc.oneof({ weight: 4, arbitrary: fc.nat(1_000).map(String) }, damagedText);
const isFree = fc.oneof({ weight: 4, arbitrary: fc.constantFrom('0', '1') }, damagedText);
const entry = fc.oneof(
  fc.record({ kind: fc.constant('charge'), cost: amount, shortfall: amount, free: isFree, ordinal: amount }),
  fc.record(
    { kind: fc.constant('refill'), amount, free: amount, ordinal: amount },
    { requiredKeys: ['kind', 'amount', 'free'] },
  ),
  fc.record({ kind: damagedText, amount, free: amount }),
  fc.record({ kind: fc.constantFrom('charge', 'refill') }),
);

const names = fc.oneof(
  { weight: 8, arbitrary: fc.constant(['kind', 'account'] as const) },
  fc.constantFrom(['type', 'account'] as const, ['kind', 'owner'] as const),
);

test('MongoDB and a restored account apply the same entries, for any kind of corruption', async (t) => {
  const { services, shard, move, redis, add } = await openStores(t);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(entry, names), { minLength: 1, maxLength: 12 }), async (entries) => {
      const { id } = await services.createAccount({ balanceNano: 1_000n, shard });
      let expected = 1_000n;
      for (const [{ kind, ...amounts }, [first, second]] of entries) {
        const fields = [first, kind, second, id, ...Object.entries(amounts).flat(), 'event', 'x'];
        await add(...fields);
        const read = tryParseLedgerEntry('1-1', fields);
        if (read !== null) expected += read.kind === 'charge' ? -read.costNano : read.amountNano;
      }
      const withPendingEntries = await readRestored(services, id);
      await move();
      t.is(await redis.xlen(redisKeys.ledgerStream(shard)), 0);
      const inMongo = await readFromMongo(services, id);
      t.deepEqual(withPendingEntries, inMongo);
      t.is(inMongo.balanceNano, expected);
      t.deepEqual(await readRestored(services, id), inMongo);
      await redis.del(redisKeys.ledgerDead(shard));
    }),
    { numRuns: 40 },
  );
});
