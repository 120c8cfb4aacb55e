import test from 'ava';
import { AppError } from '../../../shared/contract/errors.ts';
import {
  createRedis,
  waitUntilReady,
  type RedisClient,
} from '../../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../../shared/platform/redis/redis-keys.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { RequestStatsRecorder } from '../../../shared/ledger/request-stats-recorder.ts';
import { RequestStatsStore } from '../../../shared/ledger/request-stats-store.ts';
import { SumsWriter } from '../../../shared/ledger/sums-writer.ts';
import { ModelTraffic } from '../../../shared/ledger/traffic-sums.ts';
import { TrafficStore } from '../../../shared/ledger/traffic-store.ts';
import { noTotalSums, RequestSums, type SettledRequest } from '../../../shared/ledger/request-sums.ts';
import { startTestRedis, type TestRedis } from '../../support/redis.ts';

const log = createLogger('test', 'silent');
const request: SettledRequest = {
  model: 'a',
  success: true,
  responseCode: 200,
  durationMs: 120,
  billedMs: 100,
  promptTokens: 7,
  completionTokens: 11,
  isAwaited: true,
  costNano: 0n,
  vendorCostNano: null,
};

let server: TestRedis;
let redis: RedisClient;

test.beforeEach(async () => {
  server = await startTestRedis();
  redis = createRedis(server.url, 'commands', log);
  await waitUntilReady(redis);
});
test.afterEach.always(async () => {
  redis.disconnect();
  await server.stop();
});

const readSeconds = async (): Promise<number> => (await redis.time())[0]!;

test.serial("recorded sums are added to the bucket of Redis's own time, and expire", async (t) => {
  const sums = new RequestSums();
  sums.add(request);
  const before = await readSeconds();
  await new RequestStatsStore(redis).record(sums);
  const after = await readSeconds();
  for (const [toKey, seconds, retentionSeconds] of [
    [redisKeys.modelStats, 300, 2_400],
    [redisKeys.hourlyStats, 3_600, 90_000],
    [redisKeys.totalStats, 600, 90_000],
  ] as const) {
    const [key, ...more] = await redis.keys(`${toKey('')}*`);
    t.deepEqual(more, []);
    const bucket = Number(key!.slice(toKey('').length));
    t.true(bucket >= Math.floor(before / seconds) && bucket <= Math.floor(after / seconds));
    const ttl = await redis.ttl(key!);
    t.true(ttl > 0 && ttl <= retentionSeconds);
  }
});

test.serial('only the buckets within the window are summed', async (t) => {
  const current = 1_000_000;
  for (const [bucket, count] of [
    [current + 1, 1],
    [current, 10],
    [current - 6, 100],
    [current - 7, 1_000],
  ] as const) {
    await redis.hset(redisKeys.modelStats(bucket), { 'succeeded:a:b': count });
  }
  for (const [bucket, count] of [
    [current + 1, 1],
    [current, 10],
    [current - 144, 100],
    [current - 145, 1_000],
  ] as const) {
    await redis.hset(redisKeys.totalStats(bucket), { requests: count, tokens: 1 });
  }
  const models = new RequestStatsStore(redis, { readTimeMs: async () => current * 300_000 });
  t.is((await models.readModels()).value.get('a:b')?.succeeded, 110);
  const totals = new RequestStatsStore(redis, { readTimeMs: async () => current * 600_000 + 599_999 });
  t.deepEqual((await totals.readTotals()).value, { ...noTotalSums, requests: 110, tokens: 2 });
});

test.serial(
  'within one step all readers get the same stats; in the next step they get new ones',
  async (t) => {
    let nowMs = Date.now();
    nowMs -= nowMs % 30_000;
    const options = { readTimeMs: async () => nowMs };
    const [one, other] = [new RequestStatsStore(redis, options), new RequestStatsStore(redis, options)];
    const add = async (count: number): Promise<void> => {
      await redis.hincrby(redisKeys.totalStats(Math.floor(nowMs / 600_000)), 'requests', count);
    };
    await add(5);
    t.deepEqual(await one.readTotals(), { value: { ...noTotalSums, requests: 5 }, validForMs: 30_000 });
    await add(1);
    nowMs += 29_999;
    t.deepEqual(await other.readTotals(), { value: { ...noTotalSums, requests: 5 }, validForMs: 1 });
    nowMs += 1;
    await add(1);
    const next = await other.readTotals();
    t.is(next.validForMs, 30_000);
    // Includes the earlier counts, even if the step also starts a new bucket.
    t.is(next.value.requests, 7);
    // A reader whose clock is still just before the step gets the newer stats, because they were already computed.
    nowMs -= 1;
    t.deepEqual((await one.readTotals()).value, next.value);
  },
);

test.serial('each of 24 hours has its own sums, and the current one changes with the step', async (t) => {
  const current = 500_000;
  let nowMs = current * 3_600_000 + 60_000;
  const add = async (hour: number, count: number): Promise<void> => {
    await redis.hincrby(redisKeys.hourlyStats(hour), 'succeeded:a:b', count);
  };
  for (const hour of [current + 1, current, current - 5, current - 23, current - 24]) await add(hour, 3);
  const options = { readTimeMs: async () => nowMs };
  const [one, other] = [new RequestStatsStore(redis, options), new RequestStatsStore(redis, options)];
  const readCounts = async (store: RequestStatsStore): Promise<(number | undefined)[]> =>
    (await store.readHours()).value.map(({ models }) => models.get('a:b')?.succeeded);
  const expected = Array.from<number | undefined>({ length: 24 });
  expected[0] = expected[18] = expected[23] = 3;
  t.deepEqual(await readCounts(one), expected);
  const { value } = await one.readHours();
  t.deepEqual(
    value.map(({ startMs }) => startMs),
    Array.from({ length: 24 }, (_, i) => (current - 23 + i) * 3_600_000),
  );
  await add(current, 1);
  t.deepEqual(await readCounts(other), expected);
  nowMs += 30_000;
  expected[23] = 4;
  t.deepEqual(await readCounts(one), expected);
  nowMs += 3_600_000;
  t.deepEqual(await readCounts(one), [...expected.slice(1), 3]);
});

test.serial('sums that a double formats inexactly are still stored exactly', async (t) => {
  const store = new RequestStatsStore(redis);
  const sums = new RequestSums();
  sums.add({ ...request, promptTokens: 4_503_599_627_370_496, completionTokens: 1 });
  await store.record(sums);
  t.is((await store.readTotals()).value.tokens, 4_503_599_627_370_497);
});

test.serial('while Redis is unavailable sums stay in memory, and are written when it is back', async (t) => {
  const store = new RequestStatsStore(redis);
  const recorder = new RequestStatsRecorder({ stats: store, traffic: new TrafficStore(redis), log });
  recorder.note(request);
  await server.stop();
  await recorder.flush();
  recorder.note({ ...request, model: 'b' });
  await recorder.flush();
  const error = await t.throwsAsync(store.readModels(), { instanceOf: AppError });
  t.is(error.code, 'service_unavailable');
  server = await startTestRedis({ port: server.port });
  await waitUntilReady(redis);
  recorder.note(request);
  await recorder.stop();
  const { value } = await store.readModels();
  t.is(value.get('a')?.succeeded, 2);
  t.is(value.get('b')?.succeeded, 1);
  t.is((await store.readTotals()).value.requests, 3);
});

test.serial('sums added during a write are written on shutdown', async (t) => {
  const written: number[] = [];
  let finish = (): void => undefined;
  const recorder = new RequestStatsRecorder({
    stats: {
      record: async ({ totals }) => {
        written.push(totals.requests);
        if (written.length === 1) await new Promise<void>((resolve) => (finish = resolve));
      },
    },
    traffic: { record: async () => undefined },
    log,
  });
  recorder.note(request);
  const flushed = recorder.flush();
  recorder.note(request);
  recorder.note(request);
  const stopped = recorder.stop();
  finish();
  await Promise.all([flushed, stopped]);
  t.deepEqual(written, [1, 2]);
});

test.serial('sums that Redis rejects are dropped, so that later ones are written', async (t) => {
  const store = new RequestStatsStore(redis);
  const recorder = new RequestStatsRecorder({ stats: store, traffic: new TrafficStore(redis), log });
  recorder.note({ ...request, promptTokens: 0.5 });
  await recorder.flush();
  recorder.note({ ...request, model: 'b' });
  await recorder.stop();
  t.is((await store.readModels()).value.get('b')?.succeeded, 1);
});

test.serial(
  'what operators see is in keys of its own, whose lives processes of other releases do not change',
  async (t) => {
    const recorder = new RequestStatsRecorder({
      stats: new RequestStatsStore(redis),
      traffic: new TrafficStore(redis),
      log,
    });
    recorder.note({ ...request, costNano: 5n, vendorCostNano: 3n });
    await recorder.stop();
    for (const toKey of [redisKeys.modelStats, redisKeys.hourlyStats]) {
      const [key] = await redis.keys(`${toKey('')}*`);
      t.deepEqual(
        (await redis.hkeys(key!)).toSorted(),
        ['completionTokens', 'durationMs', 'promptTokens', 'succeeded', 'vendorMs'].map(
          (name) => `${name}:a`,
        ),
      );
      await redis.expire(key!, 1);
    }
    const store = new TrafficStore(redis);
    for (const [toKey, shortest] of [
      [redisKeys.operatorMinutes, 4_000],
      [redisKeys.operatorHours, 80_000],
    ] as const) {
      const [key] = await redis.keys(`${toKey('')}*`);
      t.true((await redis.ttl(key!)) > shortest);
    }
    for (const buckets of [await store.readLastHour(), await store.readHours()])
      t.like(buckets.at(-1)!.models.get('a'), { succeeded: 1, costNano: 5n, vendorCostNano: 3n, costed: 1 });
    t.is(await store.countLastHour('a'), 1);
    t.is(await store.countLastHour('b'), 0);
  },
);

test.serial(
  'only the buckets of the last hour and day are read, and those that have ended only once',
  async (t) => {
    const current = 1_000_000;
    let nowMs = current * 300_000;
    for (const bucket of [current + 1, current, current - 12, current - 13])
      await redis.hset(redisKeys.operatorMinutes(bucket), { 'failed:a:b': 3 });
    const store = new TrafficStore(redis, async () => nowMs);
    const readCounts = async () =>
      (await store.readLastHour()).map(({ models }) => models.get('a:b')?.failed ?? 0);
    t.deepEqual(await readCounts(), [3, ...Array.from({ length: 11 }, () => 0), 3]);
    await redis.del(redisKeys.operatorMinutes(current - 12));
    t.is((await readCounts())[0], 3);
    t.is(await store.countLastHour('a:b'), 3);
    nowMs += 300_000;
    t.deepEqual(await readCounts(), [...Array.from({ length: 11 }, () => 0), 3, 3]);
  },
);

test.serial('sums of thousands of models are written in parts that fit into calls', async (t) => {
  const recorder = new RequestStatsRecorder({
    stats: new RequestStatsStore(redis),
    traffic: new TrafficStore(redis),
    log,
  });
  for (let i = 0; i < 2_000; i++)
    for (const ms of [10, 1_000, 30_000])
      recorder.note({ ...request, model: `model-${i}`, durationMs: ms, firstTokenMs: ms / 2, costNano: 5n });
  await recorder.stop();
  t.is((await new RequestStatsStore(redis).readTotals()).value.requests, 6_000);
  const { models } = (await new TrafficStore(redis).readLastHour()).at(-1)!;
  t.is(models.size, 2_000);
  t.like(models.get('model-1999'), { succeeded: 3, costNano: 15n });
});

test('the parts that an outage leaves are written later, and the others not again', async (t) => {
  const written = new Map<string, number>();
  let calls = 0;
  const writer = new SumsWriter({
    create: () => new ModelTraffic(),
    store: {
      record: async ({ models }) => {
        calls += 1;
        if (calls === 2) throw new AppError('service_unavailable');
        for (const [model, { succeeded }] of models)
          written.set(model, (written.get(model) ?? 0) + succeeded);
      },
    },
    modelsPerRecord: 2,
    intervalMs: 3_600_000,
    log,
  });
  for (let i = 0; i < 5; i++) writer.note({ ...request, model: `m${i}` });
  await writer.flush();
  t.is(written.size, 2);
  await writer.stop();
  t.deepEqual(
    [...written],
    Array.from({ length: 5 }, (_, i) => [`m${i}`, 1]),
  );
});
