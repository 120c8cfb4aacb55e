/**
 * How many durations are in each of a fixed number of classes, so that durations of many processes can be added up. Each
 * class ends 1.4 times as late as the one before, so that a quantile is exact to about a tenth. May be shorter than the
 * number of classes.
 */
export type DurationHistogram = readonly number[];

const firstEndMs = 50;
const growth = 1.4;
/** The last one has no end; it begins at about seven minutes. */
export const durationClasses = 28;

const endOf = (index: number): number => firstEndMs * growth ** index;

/** The class of a duration. */
export function classifyDuration(ms: number): number {
  if (ms <= firstEndMs) return 0;
  return Math.min(durationClasses - 1, Math.ceil(Math.log(ms / firstEndMs) / Math.log(growth)));
}

/** Adds so many durations of a class to a histogram. */
export function addToClass(histogram: number[], index: number, count: number): void {
  while (histogram.length <= index) histogram.push(0);
  histogram[index]! += count;
}

/** Adds a histogram to another one. */
export function addHistogram(sum: number[], added: DurationHistogram): void {
  while (sum.length < added.length) sum.push(0);
  for (let i = 0; i < added.length; i++) sum[i]! += added[i]!;
}

/**
 * Estimates the duration that so many of the durations do not exceed.
 * @param share from 0 to 1
 * @returns milliseconds; null if there are no durations
 */
export function findQuantile(histogram: DurationHistogram, share: number): number | null {
  const total = histogram.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  const wanted = share * total;
  let before = 0;
  for (const [i, count] of histogram.entries()) {
    if (count > 0 && before + count >= wanted) {
      const from = i === 0 ? 0 : endOf(i - 1);
      return from + ((wanted - before) / count) * (endOf(i) - from);
    }
    before += count;
  }
  return endOf(histogram.length - 1);
}
