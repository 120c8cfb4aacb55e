import test from 'ava';
import { createTrafficCache } from '../../../../../api/endpoints/admin/overview/traffic-cache.ts';
import { ModelTraffic } from '../../../../../shared/ledger/traffic-sums.ts';
import { createLogger } from '../../../../../shared/platform/runtime/logger.ts';

const request = {
  model: 'a',
  success: true,
  isAwaited: true,
  responseCode: 200,
  durationMs: 120,
  billedMs: 100,
  promptTokens: 7,
  completionTokens: 11,
  costNano: 5_000_000_000n,
  vendorCostNano: 3_000_000_000n,
};

test('pollers share one description of the traffic while it is valid, and describing it changes no sum', async (t) => {
  const traffic = new ModelTraffic();
  for (const model of ['a', 'b', 'a']) traffic.add({ ...request, model });
  const { models } = traffic;
  const buckets = [
    { startMs: 0, models },
    { startMs: 3_600_000, models },
  ];
  let reads = 0;
  const read = async () => {
    reads += 1;
    return buckets;
  };
  const cache = createTrafficCache(
    { readLastHour: read, readHours: read },
    3_600_000,
    createLogger('test', 'silent'),
  );
  const [one, other] = [await cache.get(), await cache.get()];
  t.is(one.value, other.value);
  t.is(reads, 2);
  const { hour, day, hours } = one.value;
  for (const { all, most_requests: models } of [hour, day]) {
    t.like(all, { requests: 6, succeeded: 6, cost: 30, vendor_cost: 18, margin: 12 });
    t.deepEqual(
      models.map(({ model, requests }) => [model, requests]),
      [
        ['a', 4],
        ['b', 2],
      ],
    );
  }
  t.deepEqual(
    hours.map(({ requests }) => requests),
    [3, 3],
  );
  t.is(traffic.requests, 3);
});
