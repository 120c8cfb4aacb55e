import { toRubNumber } from '../../../../shared/encoding/money.ts';
import { findQuantile, type DurationHistogram } from '../../../../shared/ledger/duration-histogram.ts';
import {
  addTraffic,
  countRequests,
  createTraffic,
  ModelTraffic,
  type TrafficSums,
} from '../../../../shared/ledger/traffic-sums.ts';
import type { TrafficBucket } from '../../../../shared/ledger/traffic-store.ts';
import type { Overview } from '../../../contract/admin/overview.ts';

export type Traffic = NonNullable<Overview['traffic']>;
type Period = Traffic['hour'];

/** Models of each of the two lists of a period. */
const maxModels = 5;

/**
 * Describes the traffic of the last hour and day. Its work grows with the models, not with the requests. Pure.
 * @param minutes the last hour in parts, oldest first
 * @param hours the last 24 hours, oldest first
 */
export function describeTraffic(minutes: readonly TrafficBucket[], hours: readonly TrafficBucket[]): Traffic {
  return {
    hour: describePeriod(minutes),
    day: describePeriod(hours),
    hours: hours.map((hour) => {
      const sums = sumAll(hour.models.values());
      const { requests, failed, rejected, cost, vendor_cost, margin } = describe(sums);
      return { hour: toText(hour.startMs), requests, failed, rejected, cost, vendor_cost, margin };
    }),
  };
}

function describePeriod(buckets: readonly TrafficBucket[]): Period {
  const models = [...sumByModel(buckets)];
  const list = (rank: (sums: TrafficSums) => number): Period['most_requests'] =>
    models
      .filter(([, sums]) => rank(sums) > 0)
      .sort(([a, one], [b, other]) => rank(other) - rank(one) || (a < b ? -1 : 1))
      .slice(0, maxModels)
      .map(([model, sums]) => ({ model, ...describe(sums) }));
  return {
    since: toText(buckets[0]?.startMs ?? Date.now()),
    all: describe(sumAll(models.map(([, sums]) => sums))),
    most_requests: list(countRequests),
    most_failed: list(({ failed }) => failed),
  };
}

function sumByModel(buckets: readonly TrafficBucket[]): ReadonlyMap<string, TrafficSums> {
  const sums = new ModelTraffic();
  for (const { models } of buckets) for (const [model, added] of models) addTraffic(sums.of(model), added);
  return sums.models;
}

function sumAll(all: Iterable<TrafficSums>): TrafficSums {
  const total = createTraffic();
  for (const sums of all) addTraffic(total, sums);
  return total;
}

function describe(sums: TrafficSums): Period['all'] {
  const { succeeded, failed, rejected, costNano, vendorCostNano, costed, costedNano } = sums;
  return {
    requests: countRequests(sums),
    succeeded,
    failed,
    rejected,
    median_seconds: toQuantile(sums.durations, 0.5),
    p95_seconds: toQuantile(sums.durations, 0.95),
    first_token_median_seconds: toQuantile(sums.firstTokens, 0.5),
    first_token_p95_seconds: toQuantile(sums.firstTokens, 0.95),
    cost: toRubNumber(costNano),
    vendor_cost: costed === 0 ? null : toRubNumber(vendorCostNano),
    margin: costed === 0 ? null : toRubNumber(costedNano - vendorCostNano),
  };
}

/** Seconds, to two digits that count. */
function toQuantile(histogram: DurationHistogram, share: number): number | null {
  const ms = findQuantile(histogram, share);
  return ms === null ? null : Number((ms / 1_000).toPrecision(2));
}

const toText = (ms: number): string => new Date(ms).toISOString();
