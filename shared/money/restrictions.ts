// decision 0096
import { endOfPeriod, parsePeriod, type BudgetPeriod } from '../accounts/budget-periods.ts';

/** The budget of an account that has least left. */
export interface BudgetState {
  /** Whether the account's owner set it, and not the operator. */
  readonly isOwners: boolean;
  readonly amountNano: bigint;
  readonly leftNano: bigint;
  readonly period: BudgetPeriod;
  readonly resetsAt: Date;
}

/** An account's tokens per minute. */
export interface TokenLimit {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  /** How long until requests are admitted again; 0 if they are. */
  readonly retryAfterMs: number;
}

/** What restricts an account, as reported to callers. Null for what does not. */
export interface RestrictionState {
  readonly budget: BudgetState | null;
  readonly tokens: TokenLimit | null;
}

/** What scripts reply at the end for an account with restrictions: see restrictions.lua. */
export type RestrictionReply = [budget?: string, tokens?: string];

export const readRestrictions = ([budget = '', tokens = '']: RestrictionReply): RestrictionState => ({
  budget: parseBudget(budget),
  tokens: parseTokens(tokens),
});

export function parseBudget(text: string): BudgetState | null {
  const [field, amount, left, letter, start] = text.split(' ');
  if (amount === undefined || left === undefined || letter === undefined) return null;
  const period = parsePeriod(letter);
  return {
    isOwners: field === 'obud',
    amountNano: BigInt(amount),
    leftNano: BigInt(left),
    period,
    resetsAt: endOfPeriod(period, Number(start)),
  };
}

export function parseTokens(text: string): TokenLimit | null {
  if (text === '') return null;
  const [limit = 0, remaining = 0, resetSeconds = 0, retryAfterMs = 0] = text.split(' ').map(Number);
  return { limit, remaining, resetSeconds, retryAfterMs };
}
