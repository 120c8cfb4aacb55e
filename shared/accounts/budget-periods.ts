// decision 0096

/** Periods of budgets. They begin at 00:00 UTC, weeks on Monday. */
export const budgetPeriods = ['daily', 'weekly', 'monthly'] as const;
export type BudgetPeriod = (typeof budgetPeriods)[number];

/** How much an account may spend in each period. */
export interface Budget {
  readonly amountNano: bigint;
  readonly period: BudgetPeriod;
}

/** A budget of an account, with the sums of its current period. */
export interface HotBudget extends Budget {
  readonly spentNano: bigint;
  /** Reserved for requests and lines of batches in progress. */
  readonly reservedNano: bigint;
  readonly resetsAt: Date;
}

export const dayMs = 24 * 60 * 60 * 1_000;

/** Returns the day of a time in milliseconds, counted from 1970 in UTC. */
export const toDay = (ms: number): number => Math.floor(ms / dayMs);

/** `YYYY-MM-DD`. */
export const nameDay = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 10);

/** The inverse of `nameDay`. */
export const parseDay = (name: string): number => toDay(Date.parse(name));

/** Returns the first day of the period that has this day. The same as in budgets.lua. */
export function startOfPeriod(period: BudgetPeriod, day: number): number {
  switch (period) {
    case 'daily':
      return day;
    case 'weekly':
      // 1970-01-01 was a Thursday.
      return day - ((day + 3) % 7);
    case 'monthly':
      return day - new Date(day * dayMs).getUTCDate() + 1;
    default:
      return period satisfies never;
  }
}

/** Returns when the period that begins with this day ends. */
export function endOfPeriod(period: BudgetPeriod, start: number): Date {
  if (period !== 'monthly') return new Date((start + (period === 'daily' ? 1 : 7)) * dayMs);
  const first = new Date(start * dayMs);
  return new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 1));
}

/** Returns the letter of a period in Redis: see budgets.lua. */
const toLetter = (period: BudgetPeriod): string => period[0]!;

export const parsePeriod = (letter: string): BudgetPeriod =>
  budgetPeriods.find((period) => toLetter(period) === letter) ?? 'monthly';

/** Writes a budget for Redis, without its sums; '' for none. */
export const writeBudget = (budget: Budget | undefined): string =>
  budget === undefined ? '' : `${budget.amountNano} ${toLetter(budget.period)}`;

const budgetText = /^(\d+) (\w) (\d+) (\d+) (\d+)$/;

/**
 * Reads a budget from Redis. Sums of an earlier period are zero.
 * @param linesNano what lines of batches have reserved, which counts to the current period
 * @returns null if there is none
 */
export function parseHotBudget(
  text: string | null | undefined,
  linesNano: bigint,
  nowMs: number,
): HotBudget | null {
  const match = budgetText.exec(text ?? '');
  if (match === null) return null;
  const [, amount, letter, start, spent, reserved] = match as unknown as string[];
  const period = parsePeriod(letter!);
  const current = startOfPeriod(period, toDay(nowMs));
  const isCurrent = Number(start) === current;
  return {
    amountNano: BigInt(amount!),
    period,
    spentNano: isCurrent ? BigInt(spent!) : 0n,
    reservedNano: (isCurrent ? BigInt(reserved!) : 0n) + linesNano,
    resetsAt: endOfPeriod(period, current),
  };
}

/** Whether a budget in Redis is this one, whatever its sums are. */
export const isBudgetInRedis = (text: string | null | undefined, budget: Budget | undefined): boolean =>
  (text ?? '').split(' ', 2).join(' ') === writeBudget(budget);
