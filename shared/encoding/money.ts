import { stripTrailing } from '../platform/runtime/strip-trailing.ts';

/**
 * Money is an integer of nano-roubles (1e-9 RUB) in a bigint, and becomes a decimal only for display. Redis's Lua
 * computes in doubles, so the largest balance is the largest round amount that a double still represents exactly.
 */
export const nanoPerRub = 1_000_000_000n;

/** 9 000 000 RUB: below 2^53 nano-roubles. */
export const maxBalanceNano = 9_000_000n * nanoPerRub;

const decimal = /^(-?)(\d+)(?:\.(\d{1,9}))?$/;

/**
 * Parses a decimal such as `12.5` to nano-roubles, exactly. Returns null if it is not a decimal or has more than nine
 * decimals. A number is read by its shortest decimal form, which is what was written in a file or typed on a command
 * line.
 */
export function parseRub(value: string | number): bigint | null {
  const match = decimal.exec(typeof value === 'number' ? formatNumber(value) : value.trim());
  if (match === null) return null;
  const [, sign, whole, fraction = ''] = match;
  const nano = BigInt(whole!) * nanoPerRub + BigInt(fraction.padEnd(9, '0'));
  return sign === '-' ? -nano : nano;
}

/** Formats a number without an exponent: 1e-7 becomes 0.0000001. */
function formatNumber(value: number): string {
  const text = String(value);
  return text.includes('e') ? stripTrailing(stripTrailing(value.toFixed(12), '0'), '.') : text;
}

/** Roubles as a decimal string without trailing zeros: `0.0014`, `100`. */
export function formatRub(nano: bigint): string {
  const sign = nano < 0n ? '-' : '';
  const digits = (nano < 0n ? -nano : nano).toString().padStart(10, '0');
  const fraction = stripTrailing(digits.slice(-9), '0');
  return `${sign}${digits.slice(0, -9)}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Roubles as the nearest JSON number, which prints without floating-point noise. */
export function toRubNumber(nano: bigint): number {
  return Number(formatRub(nano));
}
