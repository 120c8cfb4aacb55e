import { chargeUnits, type ChargeUnit } from '../../shared/catalog/charge-units.ts';
import type { components } from '../generated/api.d.ts';
import { toNano } from './nano.ts';

const perMillion: readonly ChargeUnit[] = [
  'prompt',
  'cached_prompt',
  'cache_write',
  'completion',
  'characters',
];
export const isPerMillion = (part: ChargeUnit): boolean => perMillion.includes(part);

export interface CostLine {
  readonly part: ChargeUnit;
  readonly quantity: number;
  /** In roubles, per million or per one. */
  readonly rate: number;
  readonly nano: bigint;
}

/** What a request was charged, and by what. */
export type ChargedRequest = Pick<
  components['schemas']['RequestLog'],
  'rates' | 'quantities' | 'cost_request' | 'shortfall' | 'is_free_request'
>;

/** Lines that add up to the cost, to the last digit. All sums are in nano-roubles. */
export interface Breakdown {
  readonly lines: readonly CostLine[];
  /** What the lines lack of the sum, because each is rounded by itself. */
  readonly roundingNano: bigint;
  /** Paid for by a free request. */
  readonly freeNano: bigint;
  /** Beyond the balance, and not charged. */
  readonly shortfallNano: bigint;
}

const nanosPerUnit = 1_000_000_000n;
const million = 1_000_000n;

const divideHalfUp = (value: bigint, divisor: bigint): bigint => (2n * value + divisor) / (2n * divisor);

/** Returns what a request cost, part by part, or null if the prices are not known or nothing was charged by them. */
export function breakDown({
  rates,
  quantities,
  cost_request: cost,
  shortfall,
  is_free_request: isFree,
}: ChargedRequest): Breakdown | null {
  if (rates === null || quantities === null) return null;
  // Millionths of a nano-rouble, times a billion because quantities may have a fraction.
  let sum = 0n;
  const lines: CostLine[] = [];
  for (const part of chargeUnits) {
    const [rate, quantity] = [rates[part], quantities[part]];
    if (rate === undefined || quantity === undefined || quantity === 0) continue;
    const exact = toNano(rate) * toNano(quantity) * (isPerMillion(part) ? 1n : million);
    sum += exact;
    lines.push({ part, quantity, rate, nano: divideHalfUp(exact, nanosPerUnit * million) });
  }
  const shortfallNano = toNano(shortfall);
  const freeNano = isFree ? divideHalfUp(sum, nanosPerUnit * million) : 0n;
  const lineSum = lines.reduce((total, { nano }) => total + nano, 0n);
  return {
    lines,
    roundingNano: toNano(cost) + shortfallNano + freeNano - lineSum,
    freeNano,
    shortfallNano,
  };
}
