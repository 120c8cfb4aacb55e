import type { Int32 } from 'bson';
import { Decimal128, Double, Long } from 'bson';
import { compareValues, encodeKey } from '../bson/compare.ts';
import { refuse } from '../errors.ts';
import { isNumber, narrowestInteger, toBigInt, toLong, toNumber } from '../bson/numbers.ts';

/** Gathers one value from the documents of a group. `undefined` is a missing value. */
export type Accumulator = { add(value: unknown): void; result(): unknown };

export const accumulators: Record<string, () => Accumulator> = {
  $sum: () => new Sum(),
  $avg: () => {
    const sum = new Sum();
    return { add: (value) => sum.add(value), result: () => sum.average() };
  },
  $min: () => extreme((order) => order < 0),
  $max: () => extreme((order) => order > 0),
  $first: () => {
    let isSet = false;
    let first: unknown;
    return {
      add(value) {
        if (!isSet) first = value;
        isSet = true;
      },
      result: () => first ?? null,
    };
  },
  $last: () => {
    let last: unknown;
    return {
      add(value) {
        last = value;
      },
      result: () => last ?? null,
    };
  },
  $push: () => {
    const values: unknown[] = [];
    return { add: (value) => value !== undefined && values.push(value), result: () => values };
  },
  $addToSet: () => {
    const values = new Map<string, unknown>();
    return {
      add(value) {
        if (value === undefined) return;
        const key = encodeKey(value).toString('latin1');
        if (!values.has(key)) values.set(key, value);
      },
      result: () => [...values.values()],
    };
  },
  $count: () => {
    let count = 0n;
    return {
      add() {
        count += 1n;
      },
      result: () => narrowestInteger(count),
    };
  },
};

function extreme(isBetter: (order: number) => boolean): Accumulator {
  let best: unknown;
  return {
    add(value) {
      if (value === undefined || value === null) return;
      if (best === undefined || isBetter(compareValues(value, best))) best = value;
    },
    result: () => best ?? null,
  };
}

/** Integers add up exactly; doubles with the rounding error carried along, as MongoDB does, so that ten 0.1 make 1. */
class Sum implements Accumulator {
  #integers = 0n;
  #doubles = 0;
  #lost = 0;
  #count = 0;
  #hasLong = false;
  #hasDouble = false;

  add(value: unknown): void {
    if (!isNumber(value)) return;
    if (value instanceof Decimal128) throw refuse('Decimal128 arithmetic');
    this.#count += 1;
    if (value instanceof Double) {
      this.#hasDouble = true;
      this.#addDouble(value.value);
      return;
    }
    this.#hasLong ||= value instanceof Long;
    this.#integers += toBigInt(value);
  }

  result(): Int32 | Long | Double {
    if (this.#hasDouble) return new Double(this.#total());
    return this.#hasLong ? toLong(this.#integers) : narrowestInteger(this.#integers);
  }

  average(): Double | null {
    return this.#count === 0 ? null : new Double(this.#total() / this.#count);
  }

  #total(): number {
    const whole = Long.fromBigInt(BigInt.asIntN(64, this.#integers));
    const integers = whole.toBigInt() === this.#integers ? toNumber(whole) : Number(this.#integers);
    return Number.isFinite(this.#doubles) ? integers + this.#doubles + this.#lost : integers + this.#doubles;
  }

  #addDouble(value: number): void {
    const sum = this.#doubles + value;
    const [larger, smaller] =
      Math.abs(this.#doubles) >= Math.abs(value) ? [this.#doubles, value] : [value, this.#doubles];
    this.#lost += larger - sum + smaller;
    this.#doubles = sum;
  }
}
