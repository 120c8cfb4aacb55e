/** An input on its way to a vendor: whose it is, and where in its caller's list. */
export interface PlannedInput {
  readonly part: number;
  readonly text: string;
  readonly tokens: number;
}

export interface CallLimits {
  readonly maxInputs: number;
  readonly maxTokens: number;
}

/** Cuts the inputs of all parts, in order, into calls within a vendor's limits; one input too large goes alone. */
export function planCalls(inputs: readonly PlannedInput[], limits: CallLimits): PlannedInput[][] {
  const calls: PlannedInput[][] = [];
  let call: PlannedInput[] = [];
  let tokens = 0;
  for (const input of inputs) {
    if (call.length > 0 && (call.length >= limits.maxInputs || tokens + input.tokens > limits.maxTokens)) {
      calls.push(call);
      call = [];
      tokens = 0;
    }
    call.push(input);
    tokens += input.tokens;
  }
  if (call.length > 0) calls.push(call);
  return calls;
}

/**
 * Shares a whole number over weights, exactly: the shares sum to it, and each is within one of its true share. Ties
 * go to the first.
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
  let left = total - shares.reduce((a, b) => a + b, 0);
  const byRemainder = exact
    .map((value, i) => ({ i, rest: value - Math.floor(value) }))
    .sort((a, b) => b.rest - a.rest);
  for (const { i } of byRemainder) {
    if (left <= 0) break;
    shares[i]! += 1;
    left -= 1;
  }
  return shares;
}
