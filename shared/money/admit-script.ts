// decisions 0007, 0014, 0066, 0096
import { LuaScript } from '../platform/redis/lua-script.ts';
import type { RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../platform/redis/redis-keys.ts';
import type { TicketedPush } from '../platform/redis/ticketed-list.ts';
import { claimLifetimeSeconds, type IdempotencyClaim } from './idempotency-claim.ts';
import { maxStoredBytesPerAccount } from './stored-bytes.ts';
import type { AccountRejection } from './account-rejection.ts';
import { maxReservationMultiple } from './reservation-store.ts';
import { readRateLimit, type LimitedReply, type RateLimit } from './rate-window.ts';
import {
  parseBudget,
  parseTokens,
  readRestrictions,
  type BudgetState,
  type RestrictionReply,
  type RestrictionState,
} from './restrictions.ts';

const requestNames = [
  'account',
  'window',
  'reservations',
  'stream',
  'id',
  'accountId',
  'keyHash',
  'slots',
  'slotsTaken',
  'fixed',
  'unit',
  'requested',
  'minUnits',
  'share',
  'freeAllowed',
  'streamBound',
  'address',
  'model',
  'promptTokens',
] as const;
const options = { constants: { maxReservationMultiple } };

const admitScript = new LuaScript(new URL('./admit.lua', import.meta.url), requestNames, options);
const admitAndPushScript = new LuaScript(
  new URL('./admit-and-push.lua', import.meta.url),
  [...requestNames, 'list', 'pushed', 'listBound', 'item'],
  options,
);
const admitStoredScript = new LuaScript(
  new URL('./admit-stored.lua', import.meta.url),
  [
    ...requestNames,
    'storedBytes',
    'claim',
    'resumable',
    'bodyHash',
    'claimHash',
    'lifetime',
    'maxStoredBytes',
  ],
  options,
);

/** What the scripts reply: see their headers. */
type AdmissionReply =
  | LimitedReply<'ok', [cost: string, isFree: '0' | '1', units: number, ticket: number, ...RestrictionReply]>
  | [outcome: 'unknown' | 'revoked' | 'banned' | 'address_refused' | 'ledger_full']
  | [outcome: 'expired', atMs: string]
  | LimitedReply<'rate_limited', [retryAfterMs: number]>
  | LimitedReply<'tokens_limited', [tokens: string]>
  | LimitedReply<'insufficient', [needed: string, spendable: string]>
  | LimitedReply<'over_budget', [needed: string, budget: string]>
  | LimitedReply<'conflict' | 'stored_too_much' | 'model_refused'>
  | LimitedReply<'attached', [requestId: string]>;

/**
 * Maximum number of entries that wait for MongoDB in one shard's stream. Above this, new requests are rejected. The
 * entries of all shards then take about 1 GB.
 */
export const ledgerStreamBound = 100_000;

export interface AdmissionRequest {
  readonly requestId: string;
  readonly accountId: string;
  /** Null for a caller whose session was checked. */
  readonly keyHash: string | null;
  /** RPM slots that a request to the model uses. */
  readonly slots: number;
  /** Slots that pre-admission has already taken for this request. */
  readonly slotsTaken: number;
  readonly fixedNano: bigint;
  readonly nanoPerUnit: bigint;
  /** Completion tokens requested. The account may get fewer, but never fewer than `minUnits`. */
  readonly requestedUnits: number;
  readonly minUnits: number;
  /** The part of the spendable balance, in thousandths, that this request may reserve before its units are reduced. */
  readonly sharePermille: number;
  readonly freeAllowed: boolean;
  /** The idempotency claim; null if the caller sent no Idempotency-Key. */
  readonly claim: IdempotencyClaim | null;
  /** Whether the response is a stream that continues without its reader. */
  readonly isResumable: boolean;
  /** The caller's address, as `writeAddress` writes it. Not checked if absent. */
  readonly address?: string;
  /** The model's id, which the account must be allowed to use. If absent, tokens per minute are not checked either. */
  readonly model?: string;
  /** Counts towards the account's tokens per minute. */
  readonly promptTokens?: number;
}

export interface Admission extends RestrictionState {
  readonly rateLimit: RateLimit;
  readonly reservedNano: bigint;
  readonly free: boolean;
  readonly units: number;
  /** The ticket of the item that was pushed in the same step; null if none was. */
  readonly ticket: number | null;
}

export type AdmissionResult =
  | ({ readonly outcome: 'ok' } & Admission)
  | AccountRejection
  | { readonly outcome: 'ledger_full' }
  | { readonly outcome: 'conflict'; readonly rateLimit: RateLimit }
  /** An earlier request had the same Idempotency-Key and body. This one gets its response. */
  | { readonly outcome: 'attached'; readonly rateLimit: RateLimit; readonly requestId: string }
  | { readonly outcome: 'model_refused'; readonly rateLimit: RateLimit }
  | {
      readonly outcome: 'over_budget';
      readonly rateLimit: RateLimit;
      readonly neededNano: bigint;
      readonly budget: BudgetState;
    }
  /** The account has too many stored responses to admit another request whose response would be stored. */
  | { readonly outcome: 'stored_too_much'; readonly rateLimit: RateLimit }
  | {
      readonly outcome: 'insufficient';
      readonly rateLimit: RateLimit;
      readonly neededNano: bigint;
      readonly spendableNano: bigint;
    };

/**
 * @param push done in the same step, if the request is admitted with all units that it asked for and the list is not
 * full. Not for requests whose response is stored, and not in a Cluster, where the list is on another node.
 */
export async function runAdmission(
  redis: RedisClient,
  request: AdmissionRequest,
  push: TicketedPush | null = null,
): Promise<AdmissionResult> {
  return readReply((await admit(redis, request, push)) as AdmissionReply);
}

async function admit(
  redis: RedisClient,
  request: AdmissionRequest,
  push: TicketedPush | null,
): Promise<unknown> {
  const { accountId, requestId, claim, isResumable } = request;
  const shard = shardOf(accountId);
  const values = {
    account: redisKeys.account(accountId),
    window: redisKeys.rpmWindow(accountId),
    reservations: redisKeys.reservations(shard),
    stream: redisKeys.ledgerStream(shard),
    id: requestId,
    accountId,
    keyHash: request.keyHash ?? '',
    slots: request.slots,
    slotsTaken: request.slotsTaken,
    fixed: request.fixedNano.toString(),
    unit: request.nanoPerUnit.toString(),
    requested: request.requestedUnits,
    minUnits: request.minUnits,
    share: request.sharePermille,
    freeAllowed: request.freeAllowed ? 1 : 0,
    streamBound: ledgerStreamBound,
    address: request.address ?? '',
    model: request.model ?? '',
    promptTokens: request.promptTokens ?? 0,
  };
  if (claim === null && !isResumable) {
    if (push === null) return await admitScript.run(redis, values);
    const { keys, bound, item } = push;
    const [list, pushed] = keys;
    return await admitAndPushScript.run(redis, { ...values, list, pushed, listBound: bound, item });
  }
  if (push !== null) throw new TypeError('a request with a stored response is pushed separately');
  const storedBytes = redisKeys.storedBytes(accountId);
  return await admitStoredScript.run(redis, {
    ...values,
    storedBytes,
    claim: claim === null ? storedBytes : redisKeys.claim(accountId, claim.keyHash),
    resumable: isResumable ? redisKeys.resumableStream(accountId, requestId) : storedBytes,
    bodyHash: claim?.bodyHash ?? '',
    claimHash: claim?.keyHash ?? '',
    lifetime: claimLifetimeSeconds,
    maxStoredBytes: maxStoredBytesPerAccount,
  });
}

function readReply(reply: AdmissionReply): AdmissionResult {
  switch (reply[0]) {
    case 'ok': {
      const [outcome, , , , cost, isFree, units, ticket, ...restrictions] = reply;
      return {
        outcome,
        rateLimit: readRateLimit(reply),
        ...readRestrictions(restrictions),
        reservedNano: BigInt(cost),
        free: isFree === '1',
        units,
        ticket: ticket || null,
      };
    }
    case 'attached':
      return { outcome: reply[0], rateLimit: readRateLimit(reply), requestId: reply[4] };
    case 'rate_limited':
      return { outcome: reply[0], rateLimit: readRateLimit(reply), retryAfterMs: reply[4] };
    case 'insufficient':
      return {
        outcome: reply[0],
        rateLimit: readRateLimit(reply),
        neededNano: BigInt(reply[4]),
        spendableNano: BigInt(reply[5]),
      };
    case 'tokens_limited':
      return { outcome: reply[0], rateLimit: readRateLimit(reply), tokens: parseTokens(reply[4])! };
    case 'over_budget':
      return {
        outcome: reply[0],
        rateLimit: readRateLimit(reply),
        neededNano: BigInt(reply[4]),
        budget: parseBudget(reply[5])!,
      };
    case 'expired':
      return { outcome: reply[0], expiredAt: new Date(Number(reply[1])) };
    case 'stored_too_much':
    case 'model_refused':
    case 'conflict':
      return { outcome: reply[0], rateLimit: readRateLimit(reply) };
    case 'unknown':
    case 'revoked':
    case 'banned':
    case 'address_refused':
    case 'ledger_full':
      return { outcome: reply[0] };
    default:
      return reply satisfies never;
  }
}
