import { randomUUID } from 'node:crypto';
import { runAdmission } from '../../../../shared/money/admit-script.ts';
import { runSettlement } from '../../../../shared/work/settlement/settle-script.ts';
import { nothingUsed, type UsageEvent } from '../../../../shared/ledger/usage-event.ts';
import type { RedisClient } from '../../../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../../../shared/platform/redis/redis-keys.ts';
import type { MoneyAccount } from './money-stack.ts';

/**
 * Runs the money operations of one request on one account.
 * @returns the charge in nano-roubles
 */
export type Pair = (redis: RedisClient, account: MoneyAccount) => Promise<bigint>;

const model = 'bench-chat';
const priceNano = { perPromptToken: 15_000n, perCompletionToken: 60_000n };
const promptTokens = 40;
const requestedTokens = 200;

/** Runs the admission and settlement scripts for a short chat that reserves more than it costs. */
export const runScripts: Pair = async (redis, { id, keyHash }) => {
  const requestId = randomUUID();
  const fixedNano = BigInt(promptTokens) * priceNano.perPromptToken;
  const admission = await runAdmission(redis, {
    requestId,
    accountId: id,
    keyHash,
    slots: 1,
    slotsTaken: 0,
    fixedNano,
    nanoPerUnit: priceNano.perCompletionToken,
    requestedUnits: requestedTokens,
    minUnits: 1,
    sharePermille: 500,
    freeAllowed: false,
    claim: null,
    isResumable: false,
  });
  if (admission.outcome !== 'ok') throw new Error(`request refused: ${admission.outcome}`);
  const completionTokens = Math.floor(Math.random() * requestedTokens);
  const costNano = fixedNano + BigInt(completionTokens) * priceNano.perCompletionToken;
  const event = describeRequest(requestId, id, completionTokens);
  const settlement = await runSettlement(redis, event, costNano);
  if (settlement.outcome !== 'settled') throw new Error(`settlement failed: ${settlement.outcome}`);
  return settlement.costNano;
};

/** Runs the minimum of a request's money operations: two counters and one entry, on separate keys, without checks. */
export const runPlain: Pair = async (redis, { id }) => {
  const account = `${redisKeys.account(id)}:plain`;
  const event = JSON.stringify(describeRequest(randomUUID(), id, requestedTokens));
  await Promise.all([
    redis.hincrby(account, 'res', 1),
    redis.hincrby(account, 'bal', -1),
    redis.xadd(plainStream(shardOf(id)), '*', 'kind', 'charge', 'cost', '1', 'event', event),
  ]);
  return 0n;
};

export const plainStream = (shard: number): string => `${redisKeys.ledgerStream(shard)}:plain`;

function describeRequest(requestId: string, accountId: string, completionTokens: number): UsageEvent {
  return {
    v: 1,
    requestId,
    accountId,
    model,
    at: Date.now(),
    durationMs: 800,
    success: true,
    responseCode: 200,
    errorCode: null,
    details: null,
    userIp: '127.0.0.1',
    ...nothingUsed,
    promptTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    completionTokens,
    priceVersion: `${model}@1`,
    user: null,
  };
}

/**
 * Runs pairs, cycling through the accounts, with `concurrency` pairs at a time, until `shouldStop` returns true.
 * @throws any error of a pair
 */
export async function runPairs(
  redis: RedisClient,
  accounts: readonly MoneyAccount[],
  {
    pair,
    concurrency,
    shouldStop,
  }: { pair: Pair; concurrency: number; shouldStop: (started: number) => boolean },
  onCharged: (account: MoneyAccount, costNano: bigint) => void,
): Promise<void> {
  let started = 0;
  const run = async (): Promise<void> => {
    while (!shouldStop(started)) {
      const account = accounts[started % accounts.length]!;
      started += 1;
      onCharged(account, await pair(redis, account));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, run));
}
