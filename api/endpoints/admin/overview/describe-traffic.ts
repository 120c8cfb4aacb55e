import { toRubNumber } from '../../../../shared/encoding/money.ts';
import { findQuantile, type DurationHistogram } from '../../../../shared/ledger/duration-histogram.ts';
import type { BucketSums } from '../../../../shared/ledger/request-stats-store.ts';
import { noModelSums } from '../../../../shared/ledger/request-sums.ts';
import { addTraffic, noTraffic, type TrafficSums } from '../../../../shared/ledger/traffic-sums.ts';
import type { Overview } from '../../../contract/admin/overview.ts';

type Traffic = NonNullable<Overview['traffic']>;
type Period = Traffic['hour'];

/** Models of each of the two lists of a period. */
const maxModels = 5;

interface Sums extends TrafficSums {
  readonly succeeded: number;
  readonly failed: number;
}

const noSums: Sums = { ...noTraffic, succeeded: 0, failed: 0 };

const add = (one: Sums, other: Sums): Sums => ({
  ...addTraffic(one, other),
  succeeded: one.succeeded + other.succeeded,
  failed: one.failed + other.failed,
});

const countAll = ({ succeeded, failed, rejected }: Sums): number => succeeded + failed + rejected;

/**
 * Describes the traffic of the last hour and day. Its work grows with the models, not with the requests. Pure.
 * @param minutes the last hour in parts, oldest first
 * @param hours the last 24 hours, oldest first
 */
export function describeTraffic(minutes: readonly BucketSums[], hours: readonly BucketSums[]): Traffic {
  return {
    hour: describePeriod(minutes),
    day: describePeriod(hours),
    hours: hours.map((hour) => {
      const sums = sumAll([...sumByModel([hour]).values()]);
      const { requests, failed, rejected, cost, vendor_cost, margin } = describe(sums);
      return { hour: toText(hour.startMs), requests, failed, rejected, cost, vendor_cost, margin };
    }),
  };
}

function describePeriod(buckets: readonly BucketSums[]): Period {
  const models = [...sumByModel(buckets)];
  const list = (rank: (sums: Sums) => number): Period['most_requests'] =>
    models
      .filter(([, sums]) => rank(sums) > 0)
      .sort(([a, one], [b, other]) => rank(other) - rank(one) || (a < b ? -1 : 1))
      .slice(0, maxModels)
      .map(([model, sums]) => ({ model, ...describe(sums) }));
  return {
    since: toText(buckets[0]?.startMs ?? Date.now()),
    all: describe(sumAll(models.map(([, sums]) => sums))),
    most_requests: list(countAll),
    most_failed: list(({ failed }) => failed),
  };
}

function sumByModel(buckets: readonly BucketSums[]): Map<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const { models, traffic } of buckets)
    for (const model of new Set([...models.keys(), ...traffic.keys()])) {
      const { succeeded, failed } = models.get(model) ?? noModelSums;
      const more = { ...(traffic.get(model) ?? noTraffic), succeeded, failed };
      sums.set(model, add(sums.get(model) ?? noSums, more));
    }
  return sums;
}

const sumAll = (all: readonly Sums[]): Sums => all.reduce(add, noSums);

function describe(sums: Sums): Period['all'] {
  const { succeeded, failed, rejected, costNano, vendorCostNano, costed, costedNano } = sums;
  return {
    requests: countAll(sums),
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
