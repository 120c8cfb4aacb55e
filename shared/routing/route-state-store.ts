import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import { listCandidates, type RouteCandidate } from './route-candidate.ts';
import { parseCooldown, parseRefusal, type Refusal } from './cooldowns.ts';
import { cooldownFields, refusalFields, slotsOf } from './candidate-keys.ts';
import type { CatalogRoute, CatalogUpstream } from '../catalog/catalog-schema.ts';

/** The current state of a candidate, for operators to read. */
export interface CandidateState {
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** Until the breaker lets a probe through; 0 unless it is open. */
  readonly pauseMs: number;
  /** Accounts whose calls failed recently. An open breaker blocks at least these. */
  readonly failedAccounts: number;
  /** Calls that ended in the breaker's window. */
  readonly succeeded: number;
  readonly failed: number;
  /** Calls in that window that hit a rate limit. They count as neither succeeded nor failed. */
  readonly rateLimited: number;
  /** Calls in flight at the candidate's upstream, across all workers. */
  readonly calls: number;
  /** Null if the key is not on cooldown. `isForAll` is false if it is on cooldown for some accounts only. */
  readonly cooldown: { readonly forMs: number; readonly reason: string; readonly isForAll: boolean } | null;
  /** Of its key, by the vendor; null if a call with it has succeeded since, or it is more than an hour ago. */
  readonly lastRefusal: Refusal | null;
}

/** The state of routes and keys that all workers share. Only the routing scripts write it. */
export class RouteStateStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @throws AppError `service_unavailable` */
  async read(candidate: RouteCandidate, nowMs: number): Promise<CandidateState> {
    const { route } = candidate;
    const { keys } = slotsOf(candidate);
    const fields = cooldownFields(candidate);
    const refusals = refusalFields(candidate);
    const [health, failedAccounts, forAll, forSome, refused, calls] = await callRedis(() =>
      Promise.all([
        this.#redis.hgetall(redisKeys.routeHealth(route.id)),
        this.#redis.zcount(redisKeys.accountsFailedOnRoute(route.id), nowMs - breakerRules.failedMs, '+inf'),
        this.#redis.hmget(redisKeys.keysOnCooldown(route.upstream.name), fields.key, fields.keyOnRoute),
        this.#redis.hmget(redisKeys.keysOnCooldown(route.upstream.name), fields.keyForSome),
        this.#redis.hmget(redisKeys.keysOnCooldown(route.upstream.name), refusals.key, refusals.keyOnRoute),
        this.#redis.zcount(keys[0], nowMs, '+inf'),
      ]),
    );
    const cooldown = readCooldown(forAll, nowMs, true) ?? readCooldown(forSome, nowMs, false);
    const lastRefusal = findNewest(refused.map((text) => parseRefusal(text, nowMs)));
    return { ...readHealth(health, nowMs), failedAccounts, calls, cooldown, lastRefusal };
  }

  /**
   * Clears the cooldowns of an upstream's keys and the failures of its routes, so that all can be called immediately.
   */
  async reset(upstream: CatalogUpstream, routes: readonly CatalogRoute[]): Promise<void> {
    await callRedis(() => this.#redis.del(redisKeys.keysOnCooldown(upstream.name), ...listStates(routes)));
  }

  /** Like `reset`, for some routes of the upstream. Keys that are on cooldown for all of its routes stay so. */
  async resetRoutes(upstream: CatalogUpstream, routes: readonly CatalogRoute[]): Promise<void> {
    const cooldowns = routes
      .flatMap(listCandidates)
      .map(cooldownFields)
      .flatMap(({ keyOnRoute, keyForSome }) => [keyOnRoute, keyForSome]);
    const refusals = routes.flatMap(listCandidates).map((candidate) => refusalFields(candidate).keyOnRoute);
    if (cooldowns.length === 0) return;
    await callRedis(() =>
      Promise.all([
        this.#redis.hdel(redisKeys.keysOnCooldown(upstream.name), ...cooldowns, ...refusals),
        this.#redis.del(...listStates(routes)),
      ]),
    );
  }
}

/** The keys with the state of routes. */
const listStates = (routes: readonly CatalogRoute[]): string[] =>
  routes
    .flatMap(listCandidates)
    .flatMap(({ route: { id }, fingerprint }) => [
      redisKeys.routeHealth(id),
      redisKeys.accountsServedOnRoute(id),
      redisKeys.accountsFailedOnRoute(id),
      redisKeys.accountsStruckOnRoute(id),
      redisKeys.accountsServedWithKey(id, fingerprint),
      redisKeys.accountsRejectedWithKey(id, fingerprint),
    ]);

/** Returns every candidate of these routes with its state. */
export async function readCandidates(
  store: RouteStateStore,
  routes: readonly CatalogRoute[],
  nowMs: number,
): Promise<{ candidate: RouteCandidate; state: CandidateState }[]> {
  return await Promise.all(
    routes
      .flatMap(listCandidates)
      .map(async (candidate) => ({ candidate, state: await store.read(candidate, nowMs) })),
  );
}

/** The newest of refusals. @returns null if there is none */
export const findNewest = (refusals: readonly (Refusal | null)[]): Refusal | null =>
  refusals.filter((one) => one !== null).toSorted((a, b) => b.atMs - a.atMs)[0] ?? null;

type Health = Pick<CandidateState, 'breaker' | 'pauseMs' | 'succeeded' | 'failed' | 'rateLimited'>;

function readHealth(health: Readonly<Record<string, string>>, nowMs: number): Health {
  const current = Math.floor(nowMs / breakerRules.bucketMs);
  let succeeded = 0;
  let failed = 0;
  let rateLimited = 0;
  for (let index = 0; index < breakerRules.buckets; index++) {
    const at = Number(health[`at:${index}`] ?? -1);
    if (at <= current - breakerRules.buckets) continue;
    succeeded += Number(health[`ok:${index}`] ?? 0);
    failed += Number(health[`bad:${index}`] ?? 0);
    rateLimited += Number(health[`limited:${index}`] ?? 0);
  }
  const openUntil = health['until'];
  const pauseMs = Math.max(0, Number(openUntil ?? 0) - nowMs);
  const breaker = openUntil === undefined ? 'closed' : pauseMs > 0 ? 'open' : 'half-open';
  return { breaker, pauseMs, succeeded, failed, rateLimited };
}

function readCooldown(
  texts: readonly (string | null)[],
  nowMs: number,
  isForAll: boolean,
): CandidateState['cooldown'] {
  const entries = texts.flatMap((text) => {
    const cooldown = parseCooldown(text, nowMs);
    return cooldown === null ? [] : [{ ...cooldown, isForAll }];
  });
  return entries.sort((a, b) => b.forMs - a.forMs)[0] ?? null;
}
