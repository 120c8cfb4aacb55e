import type { Roubles } from './format.ts';

/** The gateway's sums are whole billionths of a rouble. */
const digits = 9;

/** Returns a sum of the API in nano-roubles, so that sums can be added exactly. */
export function toNano(roubles: Roubles): bigint {
  const isTiny = typeof roubles === 'number' && Math.abs(roubles) < 1e-6;
  // Small numbers would be written with an exponent.
  const text = isTiny ? roubles.toFixed(digits) : String(roubles);
  const [whole = '0', fraction = ''] = text.split('.');
  return BigInt(`${whole}${fraction.slice(0, digits).padEnd(digits, '0')}`);
}

/** Returns nano-roubles as a decimal string of roubles, as `useFormat` takes it. */
export function fromNano(nano: bigint): string {
  const text = String(nano < 0n ? -nano : nano).padStart(digits + 1, '0');
  return `${nano < 0n ? '-' : ''}${text.slice(0, -digits)}.${text.slice(-digits)}`;
}

/** How many digits a sum has after the point, at least those of kopecks. */
export function countDigits(nano: bigint): number {
  let count = digits;
  for (let rest = nano; count > 2 && rest % 10n === 0n; rest /= 10n) count--;
  return count;
}

/** Adds sums of the API. @returns a decimal string, exact */
export const addRoubles = (sums: readonly Roubles[]): string =>
  fromNano(sums.reduce((total: bigint, sum) => total + toNano(sum), 0n));
