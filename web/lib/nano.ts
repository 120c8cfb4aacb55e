import { formatRub, parseRub } from '../../shared/encoding/money.ts';
import type { Roubles } from './format.ts';

/** The gateway's sums are whole billionths of a rouble. */
const digits = 9;

/** Returns a sum of the API in nano-roubles, so that sums can be added exactly. */
export const toNano = (roubles: Roubles): bigint =>
  parseRub(roubles) ?? parseRub(Number(roubles).toFixed(digits)) ?? 0n;

/** How many digits a sum has after the point, at least those of kopecks. */
export function countDigits(nano: bigint): number {
  let count = digits;
  for (let rest = nano; count > 2 && rest % 10n === 0n; rest /= 10n) count--;
  return count;
}

/** Adds sums of the API. @returns a decimal string, exact */
export const addRoubles = (sums: readonly Roubles[]): string =>
  formatRub(sums.reduce((total: bigint, sum) => total + toNano(sum), 0n));
