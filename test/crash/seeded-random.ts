import { randomInt } from 'node:crypto';

/** A random number generator that gives the same numbers for the same seed. */
export interface SeededRandom {
  readonly seed: number;
  /** 0 ≤ x < 1. */
  next(): number;
  choose<T>(values: readonly T[]): T;
}

/** @param text a seed, to reproduce a run; undefined for a new one */
export function createSeededRandom(text: string | undefined): SeededRandom {
  const seed = text === undefined ? randomInt(2 ** 32) : Number(text);
  if (!Number.isSafeInteger(seed)) throw new Error(`TEST_SEED must be a whole number, not "${text}"`);
  let state = seed >>> 0;
  // Mulberry32: small, and uniform enough for choosing what to kill and to send.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { seed, next, choose: (values) => values[Math.floor(next() * values.length)]! };
}
