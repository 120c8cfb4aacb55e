// decisions 0007, 0014
import { ReplyError } from 'ioredis';
import { LuaScript } from '../../platform/redis/lua-script.ts';
import type { RedisClient } from '../../platform/redis/redis-client.ts';
import { redisKeys, shardOf } from '../../platform/redis/redis-keys.ts';
import type { ErrorCode } from '../../contract/error-kinds.ts';
import type { ErrorDetails } from '../../contract/errors.ts';
import type { UsageEvent } from '../../ledger/usage-event.ts';
import { jobConstants } from '../jobs/job-constants.ts';
import { claimLifetimeSeconds } from '../../money/idempotency-claim.ts';

const names = ['reservations', 'stream', 'orphans'] as const;
const itemNames = [
  'account',
  'minutes',
  'claim',
  'id',
  'exactCost',
  'refundsFreeRequest',
  'event',
  'keepsClaim',
  'job',
] as const;

const script = new LuaScript(new URL('./settle.lua', import.meta.url), names, {
  itemNames,
  constants: { claimLifetimeSeconds },
});
const scriptWithJobs = new LuaScript(new URL('./settle-with-jobs.lua', import.meta.url), names, {
  itemNames,
  constants: { ...jobConstants, claimLifetimeSeconds },
});

/** What the scripts reply for each request: see settlement.lua. */
type SettlementReply =
  | [outcome: 'settled', costNano: string, isFree: string]
  | [outcome: 'absent' | 'unknown']
  | [outcome: 'error', message: string];

export interface Settlement {
  /**
   * `absent`: the reservation had already ended, and nothing was charged by this call. `unknown`: the account is not in
   * Redis, and nothing was changed.
   */
  readonly outcome: 'settled' | 'absent' | 'unknown';
  readonly costNano: bigint;
  /** Whether it was paid for with a free request. */
  readonly free: boolean;
}

export interface SettlementRequest {
  readonly accountId: string;
  readonly requestId: string;
  /** Hash of the Idempotency-Key that the request was claimed under, if any. */
  readonly claimHash: string | null;
  /** The attempt that ends the request, if it is a durable job. */
  readonly jobAttempt?: number | undefined;
}

/** Why the request failed; null on success. */
export type SettledError = ({ readonly code: ErrorCode; readonly message: string } & ErrorDetails) | null;

export interface SettlementDetails {
  /** Hash of the Idempotency-Key that the request was claimed under, if any. */
  readonly claimHash?: string | null;
  /** For a durable job: the attempt that ends it, and why it failed. */
  readonly jobAttempt?: number | undefined;
  readonly error?: SettledError;
}

/** @param costNano the exact cost; null if nothing is charged, which also returns a reserved free request */
export async function runSettlement(
  redis: RedisClient,
  event: UsageEvent,
  costNano: bigint | null,
  { claimHash = null, jobAttempt, error = null }: SettlementDetails = {},
): Promise<Settlement> {
  const { accountId, requestId, success: keepsClaim } = event;
  const request = { accountId, requestId, claimHash, jobAttempt };
  const requestEnd = { costNano: costNano ?? 0n, refundsFreeRequest: costNano === null, keepsClaim, error };
  return await settle(redis, request, { ...requestEnd, event: JSON.stringify(event) });
}

/** Ends the reservation of a request that called no model. Nothing is charged and no row is logged. */
export async function releaseReservation(
  redis: RedisClient,
  request: SettlementRequest,
  error: SettledError = null,
): Promise<Settlement> {
  return await settle(redis, request, {
    costNano: 0n,
    refundsFreeRequest: true,
    keepsClaim: false,
    event: '',
    error,
  });
}

/** How a request ends. */
interface RequestEnd {
  readonly costNano: bigint;
  readonly refundsFreeRequest: boolean;
  readonly keepsClaim: boolean;
  /** The usage event as JSON; empty if nothing is to be logged. */
  readonly event: string;
  /** For a durable job: why it failed. */
  readonly error: SettledError;
}

interface PendingSettlement {
  readonly request: SettlementRequest;
  readonly requestEnd: RequestEnd;
  readonly resolve: (settlement: Settlement) => void;
  readonly reject: (error: unknown) => void;
}

/** Maximum settlements per script execution. A script blocks all other clients of Redis, so it must be short. */
const maxPerScript = 64;

/** Settlements waiting for the end of this event loop turn, by connection and shard. */
const pendingOf = new WeakMap<RedisClient, Map<number, PendingSettlement[]>>();

async function settle(
  redis: RedisClient,
  request: SettlementRequest,
  requestEnd: RequestEnd,
): Promise<Settlement> {
  if (requestEnd.costNano < 0n)
    throw new RangeError(`a request cannot cost ${requestEnd.costNano} nano-roubles`);
  const shard = shardOf(request.accountId);
  let byShard = pendingOf.get(redis);
  if (byShard === undefined) {
    byShard = new Map();
    pendingOf.set(redis, byShard);
  }
  const pending = byShard.get(shard) ?? [];
  if (pending.length === 0) {
    byShard.set(shard, pending);
    setImmediate(() => {
      byShard.delete(shard);
      for (let at = 0; at < pending.length; at += maxPerScript) {
        const batch = pending.slice(at, at + maxPerScript);
        settleBatch(redis, shard, batch).catch((error: unknown) => {
          // Some of them may have been settled before the failure. Settling those again changes nothing.
          for (const { reject } of batch) reject(error);
        });
      }
    });
  }
  return await new Promise((resolve, reject) => {
    pending.push({ request, requestEnd, resolve, reject });
  });
}

/** Describes how a durable job ends; empty for any other request. */
function describeJob({ accountId, jobAttempt }: SettlementRequest, { error }: RequestEnd): string {
  if (jobAttempt === undefined) return '';
  const to = error === null ? 's' : error.code === 'job_cancelled' ? 'c' : 'f';
  const { code, message, ...details } = error ?? { code: '', message: '' };
  return JSON.stringify({
    account: accountId,
    attempt: String(jobAttempt),
    to,
    code,
    message,
    details: writeDetails(details),
  });
}

/** A worker's errors have one issue and two headers. More would take too much of Redis. */
const maxDetailsLength = 4_000;

/** Returns the details as JSON; empty if there are none. */
function writeDetails({ issues, headers }: ErrorDetails): string {
  if (issues === undefined && headers === undefined) return '';
  const text = JSON.stringify({ issues, headers });
  return text.length > maxDetailsLength ? '' : text;
}

/** Settles these requests in one script execution, and resolves or rejects each of them. */
async function settleBatch(
  redis: RedisClient,
  shard: number,
  batch: readonly PendingSettlement[],
): Promise<void> {
  const reservations = redisKeys.reservations(shard);
  const values = {
    reservations,
    stream: redisKeys.ledgerStream(shard),
    orphans: redisKeys.orphans(shard),
  };
  const items = batch.map(({ request, requestEnd }) => {
    const { accountId, requestId, claimHash } = request;
    return {
      account: redisKeys.account(accountId),
      minutes: redisKeys.recentMinutes(accountId),
      claim: claimHash === null ? reservations : redisKeys.claim(accountId, claimHash),
      id: requestId,
      exactCost: requestEnd.costNano.toString(),
      refundsFreeRequest: requestEnd.refundsFreeRequest ? 1 : 0,
      event: requestEnd.event,
      keepsClaim: requestEnd.keepsClaim ? 1 : 0,
      job: describeJob(request, requestEnd),
    };
  });
  const hasJobs = batch.some(({ request }) => request.jobAttempt !== undefined);
  const replies = await (hasJobs ? scriptWithJobs : script).run(redis, values, items);
  for (const [i, { resolve, reject }] of batch.entries()) {
    const reply = (replies as SettlementReply[])[i]!;
    switch (reply[0]) {
      case 'settled':
        resolve({ outcome: reply[0], costNano: BigInt(reply[1]), free: reply[2] === '1' });
        break;
      case 'absent':
      case 'unknown':
        resolve({ outcome: reply[0], costNano: 0n, free: false });
        break;
      case 'error':
        reject(new ReplyError(reply[1]));
        break;
      default:
        reply satisfies never;
    }
  }
}
