/**
 * Splits an integer in proportion to weights. The shares sum to it exactly, and each differs from its exact
 * value by less than 1. Ties go to the first.
 */
export function shareExactly(total: number, weights: readonly number[]): number[] {
  const sum = weights.reduce((a, b) => a + b, 0);
  if (sum === 0)
    return shareExactly(
      total,
      weights.map(() => 1),
    );
  const exact = weights.map((weight) => (total * weight) / sum);
  const shares = exact.map(Math.floor);
  let remaining = total - shares.reduce((a, b) => a + b, 0);
  const byRemainder = exact
    .map((value, i) => ({ i, remainder: value - Math.floor(value) }))
    .sort((a, b) => b.remainder - a.remainder);
  for (const { i } of byRemainder) {
    if (remaining <= 0) break;
    shares[i]! += 1;
    remaining -= 1;
  }
  return shares;
}
