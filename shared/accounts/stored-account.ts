import type { AccountDocument } from './account-store.ts';
import {
  dayMs,
  endOfPeriod,
  parseDay,
  startOfPeriod,
  toDay,
  type Budget,
  type HotBudget,
} from './budget-periods.ts';
import type { HotAccount } from './hot-account-store.ts';
import { readJobSettings } from './job-settings.ts';

/**
 * An account that is not in Redis, as its document in MongoDB has it: nothing is in progress. When it was last used is not
 * known. Pure.
 */
export function toStoredAccount(stored: AccountDocument, nowMs: number): HotAccount {
  const toBudget = (budget: Budget | undefined): HotBudget | null =>
    budget === undefined ? null : addSums(budget, stored, nowMs);
  return {
    id: stored._id,
    keyHash: stored.keyHash,
    userType: stored.userType,
    createdAt: stored.createdAt,
    balanceNano: stored.balanceNano,
    reservedNano: 0n,
    totalAddedNano: stored.totalAddedNano,
    freeRequests: stored.freeRequests,
    refills: stored.codes,
    requestsPerMinute: stored.requestsPerMinute,
    ...readJobSettings(stored),
    banned: stored.banned,
    lastUsedAt: null,
    restrictions: {
      budget: toBudget(stored.budget),
      ownerBudget: toBudget(stored.ownerBudget),
      models: stored.models?.slice() ?? null,
      ownerModels: stored.ownerModels?.slice() ?? null,
      addresses: stored.addresses?.slice() ?? null,
      expiresAt: stored.expiresAt ?? null,
      tokensPerMinute: stored.tokensPerMinute ?? null,
      lowBalanceNano: stored.lowBalanceNano ?? null,
    },
  };
}

function addSums(budget: Budget, { spentByDay = {} }: AccountDocument, nowMs: number): HotBudget {
  const start = startOfPeriod(budget.period, toDay(nowMs));
  const resetsAt = endOfPeriod(budget.period, start);
  const isCurrent = (day: number): boolean => day >= start && day * dayMs < resetsAt.getTime();
  const spent = Object.entries(spentByDay).filter(([day]) => isCurrent(parseDay(day)));
  return {
    ...budget,
    spentNano: spent.reduce((sum, [, nano]) => sum + nano, 0n),
    reservedNano: 0n,
    resetsAt,
  };
}
