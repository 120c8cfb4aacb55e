/**
 * Counts, in a fixed list of numbers, how many of its first elements are no larger than a bound: a Fenwick tree whose
 * nodes hold their elements sorted. It takes the room of n log n numbers, and a count takes the square of log n steps.
 */
export class PrefixCounts {
  readonly #nodes: number[][];
  readonly #sorted: readonly number[];
  /** Sum of the first elements of the sorted list, by their number. */
  readonly #sums: readonly number[];

  constructor(values: readonly number[]) {
    this.#nodes = Array.from({ length: values.length + 1 }, () => []);
    const order = values.map((_, place) => place).sort((one, other) => values[one]! - values[other]!);
    // Elements reach each node in ascending order, so no node has to be sorted.
    for (const place of order) {
      for (let node = place + 1; node < this.#nodes.length; node += node & -node) {
        this.#nodes[node]!.push(values[place]!);
      }
    }
    this.#sorted = order.map((place) => values[place]!);
    const sums = [0];
    for (const value of this.#sorted) sums.push(sums.at(-1)! + value);
    this.#sums = sums;
  }

  /** How many of the first elements are no larger than the bound. */
  countWithin(first: number, bound: number): number {
    let count = 0;
    for (let node = first; node > 0; node -= node & -node) {
      count += countFirst(this.#nodes[node]!, (value) => value <= bound);
    }
    return count;
  }

  /** The sum of what is missing to the bound, over all elements that are no larger. */
  sumBelow(bound: number): number {
    const count = countFirst(this.#sorted, (value) => value <= bound);
    return count * bound - this.#sums[count]!;
  }
}

/** How many elements a condition holds for, where those are the first of the list. */
export function countFirst<T>(list: readonly T[], isAmong: (element: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isAmong(list[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}
