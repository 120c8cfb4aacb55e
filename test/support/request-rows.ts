import { randomUUID } from 'node:crypto';
import type { RequestLogDocument } from '../../shared/ledger/ledger-store.ts';
import type { TestStack } from './stack.ts';
import { RejectionStore } from '../../shared/ledger/rejection-store.ts';
import { nothingUsed } from '../../shared/ledger/usage-event.ts';
import type { AccountSpendDocument } from '../../shared/ledger/spend-store.ts';

/** A row of the request log as the ledger writes it. */
export function requestRow(accountId: string, more: Partial<RequestLogDocument> = {}): RequestLogDocument {
  const now = new Date();
  return {
    _id: randomUUID(),
    accountId,
    model: 'chat',
    at: now,
    settledAt: now,
    ordinal: 1,
    durationMs: 1_234,
    success: true,
    responseCode: 200,
    errorCode: null,
    details: null,
    userIp: '192.0.2.1',
    ...nothingUsed,
    promptTokens: 3,
    completionTokens: 1,
    priceVersion: 'p',
    user: null,
    costNano: 1n,
    shortfallNano: 0n,
    free: false,
    ...more,
  };
}

/** The sums of a day, today unless it is said, of an account's requests to a model. */
export function spendRow(
  accountId: string,
  model: string,
  { day = new Date().toISOString().slice(0, 10), ...more }: Partial<AccountSpendDocument> = {},
): AccountSpendDocument {
  return {
    _id: `${accountId}:${day}:${model}`,
    accountId,
    model,
    day,
    requests: 1,
    failures: 0,
    rows: 1,
    promptTokens: 0,
    cacheReadTokens: 0,
    completionTokens: 0,
    costNano: 0n,
    freeRequests: 0,
    vendorCostNano: 0n,
    costedRequests: 0,
    costedNano: 0n,
    appliedMs: 0,
    appliedSeq: 0,
    ...more,
  };
}

/** Logs a request that was rejected for want of money. @returns its id */
export async function insertRejection({ mongo }: TestStack, accountId: string): Promise<string> {
  const requestId = randomUUID();
  await new RejectionStore(mongo.db).insert([
    {
      requestId,
      accountId,
      model: 'steady',
      at: new Date(),
      durationMs: 4,
      status: 402,
      code: 'insufficient_balance',
      message:
        'This request may cost up to 12 RUB; 0 RUB of the balance is available. Refill the balance, or send a smaller request.',
      address: '192.0.2.1',
    },
  ]);
  return requestId;
}
