import {
  addHistograms,
  classifyDuration,
  durationClasses,
  type DurationHistogram,
} from './duration-histogram.ts';

/**
 * What operators see of a model's requests, beside the public sums. `rejected` counts those that are neither for nor against
 * the model. The durations are from admission to settlement, and to the first output, of the successful ones for which
 * their callers wait.
 */
export interface TrafficSums {
  readonly rejected: number;
  readonly costNano: bigint;
  /** What vendors charge for the requests of which that is known, how many these are, and what customers paid for them. */
  readonly vendorCostNano: bigint;
  readonly costed: number;
  readonly costedNano: bigint;
  readonly durations: DurationHistogram;
  readonly firstTokens: DurationHistogram;
}

export const noTraffic: TrafficSums = {
  rejected: 0,
  costNano: 0n,
  vendorCostNano: 0n,
  costed: 0,
  costedNano: 0n,
  durations: [],
  firstTokens: [],
};

export const addTraffic = (one: TrafficSums, other: TrafficSums): TrafficSums => ({
  rejected: one.rejected + other.rejected,
  costNano: one.costNano + other.costNano,
  vendorCostNano: one.vendorCostNano + other.vendorCostNano,
  costed: one.costed + other.costed,
  costedNano: one.costedNano + other.costedNano,
  durations: addHistograms(one.durations, other.durations),
  firstTokens: addHistograms(one.firstTokens, other.firstTokens),
});

/** A histogram with one duration. */
export function toHistogram(ms: number): DurationHistogram {
  const histogram = Array.from({ length: classifyDuration(ms) + 1 }, () => 0);
  histogram[histogram.length - 1] = 1;
  return histogram;
}

/** Names in fields of Redis hashes. Those of histograms are followed by the class. */
const numbers = ['rejected', 'costed'] as const;
const amounts = ['costNano', 'vendorCostNano', 'costedNano'] as const;
const histograms = ['durations', 'firstTokens'] as const;

/** Lists the sums with their names. Skips zeros, because adding them changes nothing. */
export const listTraffic = (sums: TrafficSums): [name: string, amount: number | bigint][] => [
  ...numbers.filter((name) => sums[name] !== 0).map((name): [string, number] => [name, sums[name]]),
  ...amounts.filter((name) => sums[name] !== 0n).map((name): [string, bigint] => [name, sums[name]]),
  ...histograms.flatMap((name) =>
    sums[name].flatMap((count, i): [string, number][] => (count === 0 ? [] : [[`${name}${i}`, count]])),
  ),
];

const ofHistogram = /^(durations|firstTokens)(\d\d?)$/;

/** Reads one of the sums. @returns null for an unknown name */
export function parseTraffic(name: string, amount: string): TrafficSums | null {
  const number = numbers.find((one) => one === name);
  if (number !== undefined) return { ...noTraffic, [number]: Number(amount) };
  const money = amounts.find((one) => one === name);
  if (money !== undefined) return { ...noTraffic, [money]: BigInt(amount) };
  const [, histogram, index] = ofHistogram.exec(name) ?? [];
  if (histogram === undefined || Number(index) >= durationClasses) return null;
  const counts = Array.from({ length: Number(index) + 1 }, () => 0);
  counts[Number(index)] = Number(amount);
  return { ...noTraffic, [histogram]: counts };
}
