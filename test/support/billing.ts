import { randomUUID } from 'node:crypto';
import { runAdmission, type AdmissionRequest } from '../../shared/money/admit-script.ts';
import { runSettlement } from '../../shared/work/settlement/settle-script.ts';
import {
  nothingUsed,
  parseLedgerEntry,
  type LedgerEntry,
  type UsageEvent,
} from '../../shared/ledger/usage-event.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';

/** Helpers that call the billing scripts and read their results. */

/** The key hash of every account created by `createHotAccount`. */
export const testKeyHash = 'hash';

/** Creates an account that exists only in Redis. */
export async function createHotAccount(
  redis: RedisClient,
  balanceNano: bigint,
  { free = 0, rpm = 1_000_000 } = {},
): Promise<string> {
  const id = randomUUID();
  const fields = {
    key: testKeyHash,
    type: 'default',
    created: '0',
    bal: balanceNano.toString(),
    res: '0',
    added: '0',
    free: String(free),
    fres: '0',
    rpm: String(rpm),
    ban: '0',
    win: '0',
  };
  await redis.hset(redisKeys.account(id), fields);
  return id;
}

/** An admission with cost 0 and no quota, apart from the given fields. */
export function admission(accountId: string, more: Partial<AdmissionRequest> = {}): AdmissionRequest {
  return {
    requestId: randomUUID(),
    accountId,
    keyHash: testKeyHash,
    slots: 1,
    slotsTaken: 0,
    fixedNano: 0n,
    nanoPerUnit: 0n,
    requestedUnits: 0,
    minUnits: 0,
    sharePermille: 1_000,
    freeAllowed: false,
    claim: null,
    isResumable: false,
    ...more,
  };
}

export function usageEvent(accountId: string, requestId: string, more: Partial<UsageEvent> = {}): UsageEvent {
  return {
    v: 1,
    requestId,
    accountId,
    model: 'm',
    at: 0,
    durationMs: 1,
    success: true,
    responseCode: 200,
    errorCode: null,
    details: null,
    userIp: '127.0.0.1',
    ...nothingUsed,
    promptTokens: 1,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    priceVersion: 'p',
    user: null,
    ...more,
  };
}

/** Charges an account as a request does. @returns the request's id, which is also that of its ledger entry */
export async function charge(
  redis: RedisClient,
  account: { readonly id: string; readonly keyHash: string },
  costNano: bigint,
): Promise<string> {
  const request = admission(account.id, { keyHash: account.keyHash, fixedNano: costNano });
  const { outcome } = await runAdmission(redis, request);
  if (outcome !== 'ok') throw new Error(`the request was not admitted: ${outcome}`);
  await runSettlement(redis, usageEvent(account.id, request.requestId), costNano);
  return request.requestId;
}

/** The usage event of a failed request. */
export function failureEvent(accountId: string, requestId: string): UsageEvent {
  return usageEvent(accountId, requestId, {
    success: false,
    responseCode: 502,
    errorCode: 'upstream_error',
    details: 'broken',
  });
}

export interface HotBalance {
  readonly balance: bigint;
  readonly reserved: bigint;
  readonly free: number;
  readonly freeHeld: number;
}

export async function readBalance(redis: RedisClient, id: string): Promise<HotBalance> {
  const [bal, res, free, fres] = await redis.hmget(redisKeys.account(id), 'bal', 'res', 'free', 'fres');
  return { balance: BigInt(bal!), reserved: BigInt(res!), free: Number(free), freeHeld: Number(fres) };
}

/** The account's entries on the ledger stream of its shard. */
export async function readEntries(redis: RedisClient, id: string): Promise<LedgerEntry[]> {
  const raw = await redis.xrange(redisKeys.ledgerStream(shardOf(id)), '-', '+');
  return raw
    .map(([streamId, fields]) => parseLedgerEntry(streamId, fields))
    .filter((entry) => entry.event.accountId === id);
}

/** Makes an open reservation older by this much. */
export async function ageReservation(
  redis: RedisClient,
  accountId: string,
  requestId: string,
  byMs: number,
): Promise<void> {
  const key = redisKeys.reservations(shardOf(accountId));
  const fields = ((await redis.hget(key, requestId)) ?? '').split(' ');
  fields[3] = String(Number(fields[3]) - byMs);
  await redis.hset(key, requestId, fields.join(' '));
}
