import { randomFillSync } from 'node:crypto';

/** Returns numbers in [0, 1). */
export type CaptchaRandom = () => number;

const batchWords = 1_024;

/** Uses the system's cryptographic generator, so that nothing can be predicted from what a caller sees. */
export function createSecureRandom(): CaptchaRandom {
  const words = new Uint32Array(batchWords);
  let next = batchWords;
  return () => {
    if (next === batchWords) {
      randomFillSync(words);
      next = 0;
    }
    return words[next++]! / 2 ** 32;
  };
}

export function between(random: CaptchaRandom, min: number, max: number): number {
  return min + random() * (max - min);
}

export function oneOf<T>(random: CaptchaRandom, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)]!;
}

/** Picks `count` values in random order (Fisher–Yates). */
export function someOf<T>(random: CaptchaRandom, values: readonly T[], count: number): T[] {
  const shuffled = [...values];
  for (let i = 0; i < count; i++) {
    const j = i + Math.floor(random() * (shuffled.length - i));
    [shuffled[i], shuffled[j]] = [shuffled[j]!, shuffled[i]!];
  }
  return shuffled.slice(0, count);
}
