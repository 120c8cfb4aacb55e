import test from 'ava';
import { noUsage } from '../../../shared/catalog/cost.ts';
import type { UsageEvent } from '../../../shared/ledger/usage-event.ts';
import { redisKeys, shardCount, shardOf } from '../../../shared/platform/redis/redis-keys.ts';
import { anyModel } from '../../../shared/work/batches/batch-constants.ts';
import type { BatchRecord } from '../../../shared/work/batches/batch-record.ts';
import { BatchStore, type NewBatch } from '../../../shared/work/batches/batch-store.ts';
import { recoverSlices, wakeBatches } from '../../../workers/batches/keep-batch-scripts.ts';
import {
  loseInput,
  renewSlices,
  reserveLines,
  returnSlice,
  settleLines,
  takeSlice,
  type SettledLines,
  type SliceAttempt,
  type TakenSlice,
} from '../../../workers/batches/slice-scripts.ts';
import { createFileId } from '../../../shared/work/files/file-id.ts';
import { FileStore } from '../../../shared/work/files/file-store.ts';
import { readBalance, readEntries } from '../../support/billing.ts';
import { batchLine, placeBatch } from '../../support/place-batches.ts';
import { openLedgerServices, type LedgerServices } from '../../support/ledger-services.ts';

/** How the state of a batch changes: who may change it, and what happens to its money and lines. */

let services: LedgerServices;
let store: BatchStore;
test.before(async () => {
  services = await openLedgerServices();
  store = new BatchStore(services.redis);
});
test.after.always(() => services.close());

const line = batchLine;
const balanceNano = 1_000_000n;

interface BatchRef {
  readonly accountId: string;
  readonly id: string;
}

const place = (accountId: string, changes: Partial<NewBatch> = {}, maxUnfinished = 100) =>
  placeBatch(services.redis, accountId, changes, maxUnfinished);

let lastShard = 0;

/** In a shard of its own, because one script works on all batches of a shard. */
const createAccount = async () =>
  await services.createAccount({ balanceNano, shard: (lastShard += 1) % shardCount });

async function createBatch(changes: Partial<NewBatch> = {}): Promise<BatchRef> {
  const { id: accountId } = await createAccount();
  const { batch, placed } = await place(accountId, changes);
  if (placed.outcome !== 'ok') throw new Error(placed.outcome);
  return { accountId, id: batch.id };
}

/** Takes a slice whose lines are run, or else one whose lines are refused. */
async function take({ accountId }: BatchRef, worker = 'worker') {
  const taken = await takeSlice(services.redis, line, accountId, worker);
  return taken.slice === null
    ? await takeSlice(services.redis, { ...line, model: anyModel }, accountId, worker)
    : taken;
}

async function takeOne(batch: BatchRef, worker = 'worker'): Promise<TakenSlice> {
  const { slice } = await take(batch, worker);
  if (slice === null) throw new Error('there is no slice to take');
  return slice;
}

const find = async ({ accountId, id }: BatchRef): Promise<BatchRecord> => (await store.find(accountId, id))!;

const outputFileId = createFileId(Date.now(), 7_200);
const nothing = { fileId: outputFileId, object: null };

/** Settles lines of one model that succeeded. */
async function settle(slice: SliceAttempt, costNano: bigint, changes: Partial<SettledLines> = {}) {
  await new FileStore(services.redis).beginSegments(slice.accountId, [`out-${slice.number}`]);
  return await settleBegun(slice, costNano, changes);
}

async function settleBegun(slice: SliceAttempt, costNano: bigint, changes: Partial<SettledLines> = {}) {
  const { step = 1 } = changes;
  const event: UsageEvent = {
    v: 1,
    requestId: `${slice.batchId}/${slice.number}.${step}/vectors`,
    accountId: slice.accountId,
    model: 'vectors',
    at: Date.now(),
    success: true,
    responseCode: 200,
    errorCode: null,
    details: null,
    userIp: '127.0.0.1',
    ...noUsage,
    billedMs: 0,
    promptTokens: 30,
    counted: false,
    priceVersion: 'v1',
    user: null,
    lines: 10,
  };
  return await settleLines(services.redis, slice, {
    step,
    done: 'x',
    isLast: true,
    releaseNano: 0n,
    notRun: 0,
    reasoningTokens: 0,
    output: { fileId: outputFileId, object: { key: `out-${slice.number}`, byteLength: 40 } },
    errors: nothing,
    models: [{ model: 'vectors', costNano, event, succeeded: 10, failed: 0 }],
    ...changes,
  });
}

const expireLeases = async ({ accountId }: BatchRef): Promise<void> => {
  const key = redisKeys.batchLeases(shardOf(accountId));
  for (const member of await services.redis.zrange(key, '0', '-1'))
    if (member.startsWith(accountId)) await services.redis.zadd(key, '1', member);
};

const readCharges = async ({ accountId }: BatchRef) =>
  (await readEntries(services.redis, accountId)).filter((entry) => entry.kind === 'charge');

test('workers take the lines of a batch slice by slice, and the batch ends with its last line', async (t) => {
  const batch = await createBatch();
  t.like(await find(batch), { status: 'validating', lines: 25, metadata: { team: 'search' } });
  const slices = [await takeOne(batch), await takeOne(batch, 'other'), await takeOne(batch)];
  t.deepEqual(
    slices.map(({ from, to, number, attempt }) => ({ from, to, number, attempt })),
    [
      { from: 0, to: 100, number: 1, attempt: 1 },
      { from: 100, to: 200, number: 2, attempt: 1 },
      { from: 200, to: 250, number: 3, attempt: 1 },
    ],
  );
  t.deepEqual(await take(batch), { left: 0, slice: null });
  t.is((await find(batch)).status, 'in_progress');
  for (const slice of slices.toReversed()) {
    t.deepEqual(await reserveLines(services.redis, slice, 500n), { outcome: 'ok' });
    const { outcome, hasEnded } = await settle(slice, 300n, { releaseNano: 500n });
    t.is(outcome, 'settled');
    t.is(hasEnded, slice.number === 1);
  }
  const ended = await find(batch);
  t.like(ended, { status: 'completed', succeeded: 30, failed: 0, costNano: 900n, reservedNano: 0n });
  t.is(ended.outputFileId, outputFileId);
  const { file, segments } = (await new FileStore(services.redis).findContent(
    batch.accountId,
    outputFileId,
  ))!;
  t.like(file, { byteLength: 120, isGrowing: false, purpose: 'batch_output' });
  t.deepEqual(
    segments.map(({ key }) => key),
    ['out-3', 'out-2', 'out-1'],
  );
  t.is(ended.errorFileId, null);
  t.is(ended.usage.promptTokens, 90);
  t.like(await readBalance(services.redis, batch.accountId), { balance: balanceNano - 900n, reserved: 0n });
  const charges = await readCharges(batch);
  t.deepEqual(
    charges.map((entry) => [entry.costNano, entry.ordinal, entry.totalNano]),
    [
      [300n, 0, null],
      [300n, 0, null],
      [300n, 0, null],
      [0n, 1, 900n],
    ],
  );
});

test('a batch keeps the same memory in Redis however many lines it has', async (t) => {
  const { redis } = services;
  const measure = async (lines: number): Promise<number> => {
    const batch = await createBatch({ lines, inputBytes: lines * 100 });
    await takeOne(batch);
    const keys = [
      redisKeys.batch(batch.accountId, batch.id),
      redisKeys.batchSlices(batch.accountId, batch.id),
    ];
    const sizes = await Promise.all(keys.map(async (key) => Number(await redis.memory('USAGE', key))));
    return sizes.reduce((a, b) => a + b, 0);
  };
  const [small, large] = [await measure(10), await measure(50_000)];
  t.true(large < small + 100, `${large} and ${small} bytes`);
  t.true(large / 50_000 < 1);
});

test('the slice of a dead worker is taken again, and the dead worker can no longer settle', async (t) => {
  const batch = await createBatch();
  const lost = await takeOne(batch, 'dead');
  await reserveLines(services.redis, lost, 500n);
  await expireLeases(batch);
  const shard = shardOf(batch.accountId);
  const woken = (await recoverSlices(services.redis, shard)).filter(({ batchId }) => batchId === batch.id);
  t.like(woken, [{ accountId: batch.accountId, ...line, weight: 1 }]);
  t.is((await find(batch)).reservedNano, 0n);
  t.is((await readBalance(services.redis, batch.accountId)).reserved, 0n);
  const again = await takeOne(batch);
  t.like(again, { number: lost.number, from: 0, to: 100, attempt: 2, deaths: 1 });
  t.is((await settle(lost, 300n)).outcome, 'gone');
  t.deepEqual(await reserveLines(services.redis, lost, 1n), { outcome: 'gone' });
  t.is((await settle(again, 300n)).outcome, 'settled');
  t.is((await readBalance(services.redis, batch.accountId)).balance, balanceNano - 300n);
  t.is((await find(batch)).succeeded, 10);
});

test('results leave the trash when they are settled; those that may be deleted already settle nothing', async (t) => {
  const { redis } = services;
  const batch = await createBatch();
  const trash = redisKeys.fileTrash(shardOf(batch.accountId));
  const [one, two, three] = [await takeOne(batch), await takeOne(batch), await takeOne(batch)];
  await new FileStore(redis).beginSegments(batch.accountId, ['out-1', 'out-2', 'unused']);
  t.true(Number(await redis.zscore(trash, 'out-1')) > Date.now() + 24 * 60 * 60_000);
  const unused = { fileId: outputFileId, object: { key: 'unused', byteLength: 0 } };
  t.is((await settleBegun(one, 100n, { errors: unused })).outcome, 'settled');
  t.is(await redis.zscore(trash, 'out-1'), null);
  t.is(await redis.zscore(trash, 'unused'), null);
  t.is((await find(batch)).errorFileId, null);

  await redis.zadd(trash, Date.now() - 1, 'out-2');
  t.is((await settleBegun(two, 100n)).outcome, 'gone');
  t.is((await settleBegun(three, 100n)).outcome, 'gone', 'it was never in the trash');
  t.true((await redis.zscore(trash, 'out-2')) !== null);
  t.like(await find(batch), { succeeded: 10, costNano: 100n });
  t.is((await readBalance(redis, batch.accountId)).balance, balanceNano - 100n);
});

test('settling a step again changes nothing', async (t) => {
  const batch = await createBatch();
  const slice = await takeOne(batch);
  await reserveLines(services.redis, slice, 500n);
  for (let i = 0; i < 2; i++)
    t.is((await settle(slice, 100n, { isLast: false, releaseNano: 200n })).outcome, 'settled');
  t.like(await find(batch), { succeeded: 10, costNano: 100n, reservedNano: 300n });
  await settle(slice, 100n, { step: 2, releaseNano: 300n });
  t.is((await settle(slice, 100n, { step: 2, releaseNano: 300n })).outcome, 'gone');
  t.like(await find(batch), { succeeded: 20, costNano: 200n, reservedNano: 0n });
  t.is((await readBalance(services.redis, batch.accountId)).balance, balanceNano - 200n);
});

test('lines that were settled before the worker died stay settled', async (t) => {
  const batch = await createBatch();
  const slice = await takeOne(batch, 'dead');
  await settle(slice, 100n, { isLast: false, done: 'Aw' });
  await expireLeases(batch);
  await recoverSlices(services.redis, shardOf(batch.accountId));
  t.like(await takeOne(batch), { number: 1, attempt: 2, step: 1, done: 'Aw', deaths: 1 });
});

test('a worker that takes a slice again after losing it goes on with the new attempt', async (t) => {
  const batch = await createBatch();
  const lost = await takeOne(batch, 'frozen');
  await expireLeases(batch);
  const shard = shardOf(batch.accountId);
  await recoverSlices(services.redis, shard);
  const again = await takeOne(batch, 'frozen');
  t.like(again, { number: lost.number, attempt: 2 });
  t.deepEqual(await renewSlices(services.redis, shard, [again, lost]), [null, 'gone']);
  t.deepEqual(await renewSlices(services.redis, shard, [lost, again]), ['gone', null]);
});

test('lines are reserved only as far as the balance and the maximum cost go', async (t) => {
  const batch = await createBatch({ maxCostNano: 1_000n });
  const [one, two] = [await takeOne(batch), await takeOne(batch)];
  t.deepEqual(await reserveLines(services.redis, one, 600n), { outcome: 'ok' });
  const short = await reserveLines(services.redis, two, 600n);
  t.deepEqual(short, { outcome: 'short', availableNano: 400n, laterNano: 1_000n, isBudget: false });
  await settle(one, 600n, { releaseNano: 600n });
  t.like(await reserveLines(services.redis, two, 600n), { availableNano: 400n, laterNano: 400n });

  const poor = await createBatch();
  const slice = await takeOne(poor);
  t.like(await reserveLines(services.redis, slice, balanceNano + 1n), {
    outcome: 'short',
    availableNano: balanceNano,
    laterNano: balanceNano,
  });
});

test('what lines have reserved is forgotten with the last batch of the account, even if an earlier release miscounted it', async (t) => {
  const batch = await createBatch();
  const { placed: other } = await place(batch.accountId);
  t.is(other.outcome, 'ok');
  const held = redisKeys.jobsHeld(batch.accountId);
  const readLines = () => services.redis.hget(held, 'lines');
  const finishOne = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      const slice = await takeOne(batch);
      t.deepEqual(await reserveLines(services.redis, slice, 100n, ['vectors']), { outcome: 'ok' });
      await settle(slice, 50n, { releaseNano: 100n });
    }
  };
  // As if a worker of an earlier release had handed back a slice.
  await services.redis.hincrby(held, 'lines', 40);
  await finishOne();
  t.is(await readLines(), '40');
  await finishOne();
  t.is(await readLines(), null);
  t.is((await readBalance(services.redis, batch.accountId)).reserved, 0n);
});

test('a cost above the reservation is debited only from money that nothing else has reserved', async (t) => {
  const batch = await createBatch();
  const [one, two] = [await takeOne(batch), await takeOne(batch)];
  await reserveLines(services.redis, one, 100n);
  await reserveLines(services.redis, two, balanceNano - 150n);
  await settle(one, 1_000n, { releaseNano: 100n });
  t.like(await readBalance(services.redis, batch.accountId), {
    balance: balanceNano - 150n,
    reserved: balanceNano - 150n,
  });
  t.like(await readCharges(batch), [{ costNano: 150n, shortfallNano: 850n }]);
});

test('cancelling lets running lines end, and refuses all others', async (t) => {
  const batch = await createBatch();
  const running = await takeOne(batch, 'busy');
  const cancellation = await store.cancel(batch.accountId, batch.id);
  t.deepEqual(cancellation, {
    outcome: 'cancelled',
    line: { ...line, model: anyModel, weight: 1 },
    workerIds: ['busy'],
  });
  t.deepEqual(await store.cancel(batch.accountId, batch.id), { outcome: 'ended' });
  t.is((await find(batch)).status, 'cancelling');
  t.deepEqual(await reserveLines(services.redis, running, 1n), {
    outcome: 'stopped',
    refusal: 'batch_cancelled',
  });
  const shard = shardOf(batch.accountId);
  const renewed = await renewSlices(services.redis, shard, [running]);
  t.deepEqual(renewed, ['batch_cancelled']);
  const rest = await takeOne(batch);
  t.like(rest, { from: 100, to: 250, refusal: 'batch_cancelled' });
  const refused = { models: [{ model: 'vectors', costNano: 0n, event: null, succeeded: 0, failed: 15 }] };
  t.false((await settle(rest, 0n, { ...refused, output: nothing })).hasEnded);
  t.true((await settle(running, 200n)).hasEnded);
  t.like(await find(batch), { status: 'cancelled', succeeded: 10, failed: 15, costNano: 200n });
  t.is((await store.cancel(batch.accountId, 'batch_unknown')).outcome, 'unknown');
});

test('a batch whose window is over stops, and ends as expired', async (t) => {
  const batch = await createBatch({ windowMs: 0 });
  const shard = shardOf(batch.accountId);
  const woken = (await wakeBatches(services.redis, shard)).filter(({ batchId }) => batchId === batch.id);
  t.is(woken.length, 1);
  t.is((await find(batch)).status, 'finalizing');
  const rest = await takeOne(batch);
  t.like(rest, { from: 0, to: 250, refusal: 'batch_expired' });
  await settle(rest, 0n, { models: [] });
  t.is((await find(batch)).status, 'expired');
});

test('a batch whose input is lost runs no more lines, and fails with all of its lines counted', async (t) => {
  const { redis } = services;
  const batch = await createBatch();
  const fault = { code: 'input_lost', line: null, message: 'lost', param: null };
  const [running, lost] = [await takeOne(batch), await takeOne(batch)];
  for (let i = 0; i < 2; i++) await loseInput(redis, lost, fault);
  t.is((await take(batch)).slice, null);
  t.deepEqual(await reserveLines(redis, running, 1n), { outcome: 'stopped', refusal: 'input_lost' });
  t.false((await settle(lost, 0n, { models: [], output: nothing })).hasEnded);
  t.is((await find(batch)).status, 'finalizing');
  t.true((await settle(running, 200n)).hasEnded);
  await loseInput(redis, lost, { ...fault, message: 'late' });
  t.like(await find(batch), { status: 'failed', succeeded: 10, failed: 15, costNano: 200n, faults: [fault] });
  t.like(await readBalance(redis, batch.accountId), { balance: balanceNano - 200n, reserved: 0n });
});

test('a slice that is handed back can be taken at once, or after a pause', async (t) => {
  const batch = await createBatch({ inputBytes: 100 });
  const slice = await takeOne(batch);
  t.deepEqual(await returnSlice(services.redis, slice, 0), { ...line, weight: 1 });
  const again = await takeOne(batch);
  t.like(again, { number: 1, attempt: 2, deaths: 0 });
  t.is(await returnSlice(services.redis, slice, 0), null, 'not by an earlier attempt');
  t.is(await returnSlice(services.redis, again, 60_000), null);
  t.is((await take(batch)).slice, null);
  const shard = shardOf(batch.accountId);
  await services.redis.zadd(`${redisKeys.jobsOf(shard)}batch-pauses`, '1', `${batch.accountId} ${batch.id}`);
  await wakeBatches(services.redis, shard);
  t.like(await takeOne(batch), { number: 1, attempt: 3 });
});

test('a banned account runs no more lines', async (t) => {
  const batch = await createBatch();
  const slice = await takeOne(batch);
  await services.redis.hset(redisKeys.account(batch.accountId), 'ban', '1');
  t.deepEqual(await reserveLines(services.redis, slice, 1n), {
    outcome: 'stopped',
    refusal: 'account_banned',
  });
  t.like(await takeOne(batch), { refusal: 'account_banned' });
});

test('a batch with faults fails at once, and reserves nothing', async (t) => {
  const faults = [{ code: 'duplicate_custom_id', line: 7, message: 'twice', param: 'custom_id' }];
  const batch = await createBatch({ faults });
  t.like(await find(batch), { status: 'failed', faults });
  t.is((await take(batch)).slice, null);
  t.like(await readBalance(services.redis, batch.accountId), { balance: balanceNano, reserved: 0n });
});

test('an account has a limited number of unfinished batches', async (t) => {
  const { id: accountId } = await services.createAccount({ balanceNano });
  await place(accountId, {}, 2);
  await place(accountId, {}, 2);
  const { placed } = await place(accountId, {}, 2);
  t.deepEqual(placed, { outcome: 'too_many_batches', unfinished: 2 });
  const listed = await store.list(accountId, null, 10);
  t.is(listed.length, 2);
  t.deepEqual(
    (await store.list(accountId, listed[0]!.id, 10)).map(({ id }) => id),
    [listed[1]!.id],
  );
});
