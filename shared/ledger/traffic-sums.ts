import { addHistogram, addToClass, classifyDuration, durationClasses } from './duration-histogram.ts';
import { classifyRequest, type SettledRequest } from './request-sums.ts';

/** Their names are those of fields of Redis hashes. */
const counts = ['succeeded', 'failed', 'rejected', 'costed'] as const;
const amounts = ['costNano', 'vendorCostNano', 'costedNano'] as const;
/** In fields of Redis hashes, the class follows. */
const histograms = ['durations', 'firstTokens'] as const;

/**
 * What operators see of a model's requests, to be added to in place. `rejected` counts those that are neither for nor against
 * the model. The durations are from admission to settlement, and to the first output, of the successful ones for which
 * their callers wait. `vendorCostNano` is what vendors charge for the requests of which that is known, `costed` how many these
 * are, and `costedNano` what customers paid for them.
 */
export type TrafficTotal = Record<(typeof counts)[number], number> &
  Record<(typeof amounts)[number], bigint> &
  Record<(typeof histograms)[number], number[]>;
export type TrafficSums = {
  readonly [Name in keyof TrafficTotal]: TrafficTotal[Name] extends number[]
    ? readonly number[]
    : TrafficTotal[Name];
};

export const createTraffic = (): TrafficTotal => ({
  succeeded: 0,
  failed: 0,
  rejected: 0,
  costed: 0,
  costNano: 0n,
  vendorCostNano: 0n,
  costedNano: 0n,
  durations: [],
  firstTokens: [],
});

export function addTraffic(total: TrafficTotal, added: TrafficSums): void {
  for (const name of counts) total[name] += added[name];
  for (const name of amounts) total[name] += added[name];
  for (const name of histograms) addHistogram(total[name], added[name]);
}

export const countRequests = ({ succeeded, failed, rejected }: TrafficSums): number =>
  succeeded + failed + rejected;

/** Sums of operators over requests, by model. The size depends only on the number of models. */
export class ModelTraffic {
  readonly #models: Map<string, TrafficTotal>;

  constructor(models = new Map<string, TrafficTotal>()) {
    this.#models = models;
  }

  get models(): ReadonlyMap<string, TrafficSums> {
    return this.#models;
  }

  get requests(): number {
    let requests = 0;
    for (const traffic of this.#models.values()) requests += countRequests(traffic);
    return requests;
  }

  of(model: string): TrafficTotal {
    const known = this.#models.get(model);
    if (known !== undefined) return known;
    const total = createTraffic();
    this.#models.set(model, total);
    return total;
  }

  add(request: SettledRequest): void {
    const { model, isAwaited, costNano, vendorCostNano, durationMs, firstTokenMs } = request;
    const total = this.of(model);
    const judgement = classifyRequest(request);
    total[judgement === 'unjudged' ? 'rejected' : judgement] += 1;
    total.costNano += costNano;
    if (vendorCostNano !== null) {
      total.costed += 1;
      total.vendorCostNano += vendorCostNano;
      total.costedNano += costNano;
    }
    if (judgement !== 'succeeded' || !isAwaited) return;
    addToClass(total.durations, classifyDuration(durationMs), 1);
    if (firstTokenMs !== undefined) addToClass(total.firstTokens, classifyDuration(firstTokenMs), 1);
  }

  addAll(other: ModelTraffic): void {
    for (const [model, added] of other.models) addTraffic(this.of(model), added);
  }

  /** @returns parts of the sums, each of so many models */
  *listParts(models: number): Generator<ModelTraffic> {
    const all = [...this.#models];
    for (let at = 0; at < all.length; at += models)
      yield new ModelTraffic(new Map(all.slice(at, at + models)));
  }
}

/** Lists sums with their names. Skips zeros, because adding them changes nothing. */
export const listTraffic = (sums: TrafficSums): [name: string, amount: number | bigint][] => [
  ...counts.filter((name) => sums[name] !== 0).map((name): [string, number] => [name, sums[name]]),
  ...amounts.filter((name) => sums[name] !== 0n).map((name): [string, bigint] => [name, sums[name]]),
  ...histograms.flatMap((name) =>
    sums[name].flatMap((count, i): [string, number][] => (count === 0 ? [] : [[`${name}${i}`, count]])),
  ),
];

type AddText = (total: TrafficTotal, amount: string) => void;

/** By the name of the sum. */
const adders: ReadonlyMap<string, AddText> = new Map<string, AddText>([
  ...counts.map((name): [string, AddText] => [name, (total, amount) => (total[name] += Number(amount))]),
  ...amounts.map((name): [string, AddText] => [name, (total, amount) => (total[name] += BigInt(amount))]),
  ...histograms.flatMap((name) =>
    Array.from({ length: durationClasses }, (_, i): [string, AddText] => [
      `${name}${i}`,
      (total, amount) => addToClass(total[name], i, Number(amount)),
    ]),
  ),
]);

/** Whether there is a sum with this name. */
export const isTrafficName = (name: string): boolean => adders.has(name);

/** Adds to the sum with a name. Unknown names, of later releases, are skipped. */
export const addTrafficText = (total: TrafficTotal, name: string, amount: string): void =>
  adders.get(name)?.(total, amount);

/** The names of the sums of which `countRequests` is made. */
export const requestCounts = [
  'succeeded',
  'failed',
  'rejected',
] as const satisfies readonly (typeof counts)[number][];
