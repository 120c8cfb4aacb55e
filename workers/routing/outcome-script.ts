// decisions 0016, 0038
import { LuaScript } from '../../shared/platform/redis/lua-script.ts';
import type { RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { breakerRules } from '../../shared/routing/breaker-rules.ts';
import type { CallSlot } from './acquire-script.ts';
import { refusalNotedMs } from '../../shared/routing/cooldowns.ts';
import { cooldownFields, refusalFields, slotsOf } from '../../shared/routing/candidate-keys.ts';
import type { UpstreamFailure } from '../upstreams/upstream.ts';

const { bucketMs, buckets, minCalls, failedPercent, minAccounts, failedMs } = breakerRules;
const { firstPauseMs, maxPauseMs, servedMs, retentionMs } = breakerRules;

const outcomeScript = new LuaScript(
  new URL('./outcome.lua', import.meta.url),
  [
    'health',
    'cooldowns',
    'servedAccounts',
    'failedAccounts',
    'struckAccounts',
    'servedWithKey',
    'rejectedAccounts',
    'holders',
    'lease',
    'outcome',
    'isProbe',
    'cooldownField',
    'cooldownScope',
    'cooldownReason',
    'forMs',
    'forAccountMs',
    'calls',
    'holder',
    'unlessServedForMs',
    'accountIds',
    'refusalField',
    'keyRefusal',
    'routeRefusal',
  ],
  {
    itemNames: ['slots'],
    constants: {
      bucketMs,
      buckets,
      minCalls,
      failedPercent,
      minAccounts,
      failedMs,
      firstPauseMs,
      maxPauseMs,
      servedMs,
      retentionMs,
      refusalNotedMs,
    },
  },
);
const confirmScript = new LuaScript(new URL('./confirm-probe.lua', import.meta.url), [
  'health',
  'failedAccounts',
  'struckAccounts',
  'holders',
  'holder',
]);

/**
 * What a call's outcome says about its route. `bad` is a server failure. `limited` is a key over its rate limit,
 * counted only for display. `none` says nothing about the route: the caller disconnected, or the key or the request
 * caused the failure.
 */
export type CallOutcome = 'ok' | 'bad' | 'limited' | 'none';

/** Puts a key on cooldown: everywhere, or on this route only. */
export interface KeyCooldown {
  /** The failure that led to it: the vendor rejected the key, or limits its rate. */
  readonly failure: Extract<UpstreamFailure, 'auth' | 'rate_limited'>;
  /**
   * A `keyOnRoute` cooldown may be caused by the content of a request. Other accounts may then keep using the key.
   */
  readonly scope: 'key' | 'keyOnRoute';
  readonly forMs: number;
  /** Duration if the cooldown applies only to the call's accounts; `forMs` by default. */
  readonly forAccountMs?: number;
  /** Short and without secrets; operators read it. */
  readonly reason: string;
}

/** `open`: a probe failed, and the breaker stays open for longer. */
export type BreakerChange = 'same' | 'opened' | 'open' | 'closed';

export interface OutcomeResult {
  readonly breaker: BreakerChange;
  /** The accounts for which the key went on cooldown: none, those of the call, or all. */
  readonly cooldownFor: 'nobody' | 'accounts' | 'all';
}

/** How a call ended. */
export interface CallEnd {
  readonly outcome: CallOutcome;
  readonly cooldown: KeyCooldown | null;
  /** The accounts whose requests the call served. */
  readonly accountIds: readonly string[];
  /** The outcome does not count if the route served a call within this time, or shortly before. By default, it counts. */
  readonly unlessServedForMs?: number | null;
}

/** Maximum accounts recorded per call. */
const maxRecordedAccounts = 1_000;

/**
 * Ends a granted call, in one round trip.
 * @param calls how many calls had this outcome, one after the other, in the same slot
 */
export async function runOutcome(
  redis: RedisClient,
  { candidate, lease, holder, isProbe }: CallSlot,
  { outcome, cooldown, accountIds, unlessServedForMs = null }: CallEnd,
  calls = 1,
): Promise<OutcomeResult> {
  const { route, fingerprint } = candidate;
  const slots = slotsOf(candidate);
  const refusals = refusalFields(candidate);
  const taken = slots.keys.filter((_, i) => slots.limits[i]! > 0);
  const reply = await outcomeScript.run(
    redis,
    {
      health: redisKeys.routeHealth(route.id),
      cooldowns: redisKeys.keysOnCooldown(route.upstream.name),
      servedAccounts: redisKeys.accountsServedOnRoute(route.id),
      failedAccounts: redisKeys.accountsFailedOnRoute(route.id),
      struckAccounts: redisKeys.accountsStruckOnRoute(route.id),
      servedWithKey: redisKeys.accountsServedWithKey(route.id, fingerprint),
      rejectedAccounts: redisKeys.accountsRejectedWithKey(route.id, fingerprint),
      holders: redisKeys.slotHolders,
      lease,
      outcome,
      isProbe: isProbe ? 1 : 0,
      cooldownField: cooldown === null ? '' : cooldownFields(candidate)[cooldown.scope],
      cooldownScope: cooldown?.scope ?? '',
      cooldownReason: cooldown?.reason ?? '',
      forMs: Math.ceil(cooldown?.forMs ?? 0),
      forAccountMs: Math.ceil(cooldown?.forAccountMs ?? cooldown?.forMs ?? 0),
      calls,
      holder,
      unlessServedForMs: unlessServedForMs === null ? '' : Math.ceil(unlessServedForMs),
      accountIds: JSON.stringify(accountIds.slice(0, maxRecordedAccounts)),
      refusalField: cooldown?.failure === 'auth' ? refusals[cooldown.scope] : '',
      keyRefusal: refusals.key,
      routeRefusal: refusals.keyOnRoute,
    },
    taken.map((key) => ({ slots: key })),
  );
  const [breaker, cooldownFor] = reply as [BreakerChange, OutcomeResult['cooldownFor']];
  return { breaker, cooldownFor };
}

/**
 * Closes the breaker when the vendor's response to the probe starts well. @returns whether the breaker was still open
 */
export async function confirmProbe(redis: RedisClient, { candidate, holder }: CallSlot): Promise<boolean> {
  const { id } = candidate.route;
  const values = {
    health: redisKeys.routeHealth(id),
    failedAccounts: redisKeys.accountsFailedOnRoute(id),
    struckAccounts: redisKeys.accountsStruckOnRoute(id),
    holders: redisKeys.slotHolders,
    holder,
  };
  return (await confirmScript.run(redis, values)) === 1;
}
