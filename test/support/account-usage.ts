import type { AccountSpendDocument } from '../../shared/ledger/spend-store.ts';
import type { TestStack } from './stack.ts';

const dayMs = 24 * 3_600_000;

export interface UsageOfDay {
  readonly model: string;
  readonly daysAgo: number;
  readonly requests: number;
  readonly costNano: bigint;
}

/** Gives an account a month of statistics, as the ledger would have written them. */
export async function insertUsage(
  stack: TestStack,
  accountId: string,
  days: readonly UsageOfDay[],
): Promise<void> {
  const documents = days.map(({ model, daysAgo, requests, costNano }): AccountSpendDocument => {
    const day = new Date(Date.now() - daysAgo * dayMs).toISOString().slice(0, 10);
    return {
      _id: `${accountId}:${day}:${model}`,
      accountId,
      model,
      day,
      requests,
      failures: 0,
      rows: requests,
      promptTokens: requests * 420,
      cacheReadTokens: requests * 60,
      completionTokens: requests * 75,
      costNano,
      freeRequests: 0,
      vendorCostNano: 0n,
      costedRequests: 0,
      costedNano: 0n,
      appliedMs: 0,
      appliedSeq: 0,
    };
  });
  await stack.mongo.db.collection<AccountSpendDocument>('account_spend').insertMany(documents);
}
