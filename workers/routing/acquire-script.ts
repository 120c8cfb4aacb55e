// decisions 0017, 0037, 0086
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { breakerRules } from '../../shared/routing/breaker-rules.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import { cooldownFields, slotsOf } from '../../shared/routing/candidate-keys.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import { restorePauseMs } from './slot-holders-script.ts';

/** How long an account counts as waiting. Longer than the interval at which a waiting process tries again. */
const waitingMs = 500;

/** How long slots are kept free for an account that used some. */
const recentMs = 10 * 60_000;

/**
 * How long an account with durable jobs or batch lines counts as waiting. Longer than for waiting callers, so that they
 * keep their position if a busy worker retries late.
 */
const classWaitMs = 1_000;
/** The same for the other accounts after a grant: their worker tries again for them immediately. */
const classRetryMs = 50;

/** Follows the account in the names of batch calls' leases. */
const batchMark = '|batch|';

const { bucketMs, buckets, failedMs, firstPauseMs, maxPauseMs, minAccounts, probeMs } = breakerRules;

const acquireScript = new LuaScript(
  new URL('./acquire.lua', import.meta.url),
  ['holders', 'holdersState', 'holder', 'lease', 'leaseMs', 'class', 'accountIds'],
  {
    itemNames: [
      'health',
      'cooldowns',
      'upstreamCalls',
      'keyCalls',
      'routeCalls',
      'upstreamWaiting',
      'keyWaiting',
      'routeWaiting',
      'upstreamUsers',
      'keyUsers',
      'routeUsers',
      'failedAccounts',
      'servedAccounts',
      'rejectedAccounts',
      'upstreamLimit',
      'keyLimit',
      'routeLimit',
      'keyField',
      'keyOnRouteField',
    ],
    constants: {
      bucketMs,
      buckets,
      failedMs,
      firstPauseMs,
      maxPauseMs,
      minAccounts,
      probeMs,
      restorePauseMs,
      waitingMs,
      recentMs,
      classWaitMs,
      classRetryMs,
      batchMark,
      jobsWaitSinceSuffix: redisKeys.jobsWaitSince(''),
      jobsWaitUntilSuffix: redisKeys.jobsWaitUntil(''),
      batchWaitsSinceSuffix: redisKeys.batchWaitsSince(''),
      batchWaitsUntilSuffix: redisKeys.batchWaitsUntil(''),
    },
  },
);

type AcquireReply =
  | [
      outcome: 'granted',
      candidate: number,
      account: number,
      isProbe: 0 | 1,
      spareSlots: number,
      slots: number,
    ]
  | [outcome: 'busy']
  | [outcome: 'unreported']
  | [outcome: 'paused', keyMs: number, breakerMs: number];

/**
 * Maximum accounts per acquire. It exceeds the number of accounts that can hold half of the slots of an upstream, a key
 * or a route at the same time, so accounts at their limit cannot fill the list.
 */
export const maxAccountsPerAcquire = 10;

export interface CallSlot {
  readonly candidate: RouteCandidate;
  /** The account that holds the slot. */
  readonly accountId: string;
  readonly lease: string;
  /** The name under which its process held it. */
  readonly holder: string;
  /** The single call that an open breaker lets through to test whether the route has recovered. */
  readonly isProbe: boolean;
  /** How many more calls of this candidate could have been granted at the same moment. */
  readonly spareSlots: number;
  /** How many concurrent calls this candidate allows, including those of others; a million if there is no limit. */
  readonly slots: number;
}

/**
 * `busy`: at least one candidate lacks only a free slot. `paused`: all candidates are paused. `unreported`: the holder
 * counts as dead, or Redis has lost its report.
 */
export type AcquireResult =
  | { readonly outcome: 'granted'; readonly slot: CallSlot }
  | { readonly outcome: 'busy' | 'unreported' }
  | AcquirePause;

export interface AcquirePause {
  readonly outcome: 'paused';
  /** Until the first key on cooldown may be used again; null if none is on cooldown. */
  readonly keyMs: number | null;
  /** Until the first open breaker lets a probe through; null if none is open. */
  readonly breakerMs: number | null;
}

/** Identifies a call across all workers. */
export interface CallName {
  /** The name under which the process holds slots. */
  readonly holder: string;
  /** Unique for the holder. */
  readonly callNumber: number;
  readonly callClass: CallClass;
}

/** Returns the name of the lease of a call that this account makes. */
export const nameCallLease = (accountId: string, { holder, callNumber, callClass }: CallName): string =>
  `${accountId}${callClass === 'batch' ? batchMark : '|'}${holder}:${callNumber}`;

/**
 * Tries to acquire a call slot, in one round trip.
 * @param accountIds the waiting accounts, next first; at most `maxAccountsPerAcquire`
 * @param leaseMs how long its slots are held without renewal
 */
export async function runAcquire(
  redis: RedisClient,
  candidates: readonly RouteCandidate[],
  accountIds: readonly string[],
  call: CallName,
  leaseMs: number,
): Promise<AcquireResult> {
  const { holder, callClass } = call;
  const values = {
    holders: redisKeys.slotHolders,
    holdersState: redisKeys.slotHoldersState,
    holder,
    lease: nameCallLease('', call),
    leaseMs,
    class: callClass,
    accountIds: JSON.stringify(accountIds),
  };
  const reply = (await acquireScript.run(redis, values, candidates.map(describeCandidate))) as AcquireReply;
  switch (reply[0]) {
    case 'granted': {
      const [outcome, candidateNumber, accountNumber, isProbe, spareSlots, slots] = reply;
      const candidate = candidates[candidateNumber - 1]!;
      const accountId = accountIds[accountNumber - 1]!;
      return {
        outcome,
        slot: {
          candidate,
          accountId,
          lease: nameCallLease(accountId, call),
          holder,
          isProbe: isProbe === 1,
          spareSlots,
          slots,
        },
      };
    }
    case 'paused':
      return { outcome: reply[0], keyMs: orNull(reply[1]), breakerMs: orNull(reply[2]) };
    case 'busy':
    case 'unreported':
      return { outcome: reply[0] };
    default:
      return reply satisfies never;
  }
}

const orNull = (ms: number): number | null => (ms < 0 ? null : ms);

/** Returns the keys and arguments of one candidate. */
function describeCandidate(candidate: RouteCandidate) {
  const { route, fingerprint } = candidate;
  const { keys, limits } = slotsOf(candidate);
  const [upstreamCalls, keyCalls, routeCalls] = keys;
  const [upstreamLimit, keyLimit, routeLimit] = limits;
  const fields = cooldownFields(candidate);
  return {
    health: redisKeys.routeHealth(route.id),
    cooldowns: redisKeys.keysOnCooldown(route.upstream.name),
    upstreamCalls,
    keyCalls,
    routeCalls,
    upstreamWaiting: redisKeys.waitingFor(upstreamCalls),
    keyWaiting: redisKeys.waitingFor(keyCalls),
    routeWaiting: redisKeys.waitingFor(routeCalls),
    upstreamUsers: redisKeys.slotUsersOf(upstreamCalls),
    keyUsers: redisKeys.slotUsersOf(keyCalls),
    routeUsers: redisKeys.slotUsersOf(routeCalls),
    failedAccounts: redisKeys.accountsFailedOnRoute(route.id),
    servedAccounts: redisKeys.accountsServedOnRoute(route.id),
    rejectedAccounts: redisKeys.accountsRejectedWithKey(route.id, fingerprint),
    upstreamLimit,
    keyLimit,
    routeLimit,
    keyField: fields.key,
    keyOnRouteField: fields.keyOnRoute,
  };
}
