/**
 * For a fixed list of numbers, counts how many of its first n elements do not exceed a bound. It is a Fenwick tree
 * whose nodes hold their elements sorted. It takes O(n log n) memory, and a count takes O(log² n) steps.
 */
export class PrefixCounts {
  readonly #nodes: number[][];
  readonly #sorted: readonly number[];
  /** Prefix sums of the sorted list, by number of elements. */
  readonly #sums: readonly number[];

  constructor(values: readonly number[]) {
    this.#nodes = Array.from({ length: values.length + 1 }, () => []);
    const order = values.map((_, index) => index).sort((one, other) => values[one]! - values[other]!);
    // Elements reach each node in ascending order, so no node has to be sorted.
    for (const index of order) {
      for (let node = index + 1; node < this.#nodes.length; node += node & -node) {
        this.#nodes[node]!.push(values[index]!);
      }
    }
    this.#sorted = order.map((index) => values[index]!);
    const sums = [0];
    for (const value of this.#sorted) sums.push(sums.at(-1)! + value);
    this.#sums = sums;
  }

  /** Counts how many of the first elements do not exceed the bound. */
  countWithin(first: number, bound: number): number {
    let count = 0;
    for (let node = first; node > 0; node -= node & -node) {
      count += countFirst(this.#nodes[node]!, (value) => value <= bound);
    }
    return count;
  }

  /** Sums `bound - element` over all elements that do not exceed the bound. */
  sumBelow(bound: number): number {
    const count = countFirst(this.#sorted, (value) => value <= bound);
    return count * bound - this.#sums[count]!;
  }
}

/** Counts the elements that satisfy a condition. These must come first in the list. */
export function countFirst<T>(list: readonly T[], isMatch: (element: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isMatch(list[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}
