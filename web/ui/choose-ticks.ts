/** About how many steps an axis has. */
const wantedSteps = 4;
const niceFactors = [1, 2, 5, 10];

/**
 * Returns the values that an axis names, from 0 to the first round one that is not below the highest value.
 * @param isWhole whether all values are whole: then the steps are, too
 */
export function chooseTicks(highest: number, isWhole: boolean): number[] {
  if (!(highest > 0)) return [0, 1];
  const rough = highest / wantedSteps;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const factor = niceFactors.find((nice) => nice * magnitude >= rough * (1 - 1e-9)) ?? 10;
  const step = isWhole ? Math.max(1, factor * magnitude) : factor * magnitude;
  const steps = Math.ceil((highest / step) * (1 - 1e-9));
  // Multiples of a fraction would have its rounding error as digits.
  return Array.from({ length: steps + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}
