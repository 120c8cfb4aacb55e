import { createHash } from 'node:crypto';

/** Returns pseudo-random numbers in [0, 1) that are the same for the same seed on any machine. */
export type Random = () => number;

/** Mulberry32, seeded with a hash of the texts, so that a change in any of them changes the whole sequence. */
export function createRandom(...seed: readonly string[]): Random {
  const hash = createHash('sha256');
  for (const text of seed) hash.update(`${Buffer.byteLength(text)}:`).update(text);
  let state = hash.digest().readUInt32LE(0);
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function pickBetween(random: Random, low: number, high: number): number {
  return low + (high - low) * random();
}

export function pickOne<T>(random: Random, items: readonly [T, ...T[]]): T {
  return items[Math.floor(random() * items.length)] ?? items[0];
}

export function shuffle<T>(random: Random, items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}
