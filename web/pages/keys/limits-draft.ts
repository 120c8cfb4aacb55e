import type { ApiAccount } from '../../lib/accounts.ts';
import type { AccountChange } from './account-changes.ts';
import { readAmount } from '../../lib/read-amount.ts';

export type Period = NonNullable<AccountChange['budget']>['period'];
export const periods: readonly Period[] = ['daily', 'weekly', 'monthly'];

/** Limits of an account while their owner changes them. Amounts are as they were typed. */
export interface LimitsDraft {
  readonly hasBudget: boolean;
  readonly amount: string;
  readonly period: Period;
  readonly hasThreshold: boolean;
  readonly threshold: string;
  readonly hasModels: boolean;
  readonly models: readonly string[];
}

export const beginLimits = ({ budget, low_balance: threshold, models }: ApiAccount): LimitsDraft => ({
  hasBudget: budget !== null && budget !== undefined,
  amount: budget?.amount ?? '',
  period: budget?.period ?? 'monthly',
  hasThreshold: threshold !== null && threshold !== undefined,
  threshold: threshold ?? '',
  hasModels: Array.isArray(models),
  models: models ?? [],
});

export type LimitsProblem = 'wrongAmount' | 'overOperator' | 'chooseModel';
export type LimitsProblems = { readonly [Field in 'amount' | 'threshold' | 'models']?: LimitsProblem };

/** Returns what is wrong with a draft: an owner cannot allow more than the operator does. */
export function findProblems(draft: LimitsDraft, { limits }: ApiAccount): LimitsProblems {
  const amount = readAmount(draft.amount);
  const threshold = readAmount(draft.threshold);
  const operators = limits?.budget ?? null;
  const isOver = operators?.period === draft.period && Number(amount) > Number(operators.amount);
  return {
    ...(draft.hasBudget && amount === null ? { amount: 'wrongAmount' } : {}),
    ...(draft.hasBudget && amount !== null && isOver ? { amount: 'overOperator' } : {}),
    ...(draft.hasThreshold && threshold === null ? { threshold: 'wrongAmount' } : {}),
    ...(draft.hasModels && draft.models.length === 0 ? { models: 'chooseModel' } : {}),
  };
}

/** Returns the change that a draft without problems means. */
export function writeLimits(draft: LimitsDraft): AccountChange {
  const { hasBudget, amount, period, hasThreshold, threshold, hasModels, models } = draft;
  return {
    budget: hasBudget ? { amount: readAmount(amount)!, period } : null,
    low_balance: hasThreshold ? readAmount(threshold)! : null,
    models: hasModels ? [...models] : null,
  };
}
