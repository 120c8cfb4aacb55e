import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import { findWays, type RouteWay } from './route-way.ts';
import { setAsideFields, slotsOf } from './way-keys.ts';
import type { CatalogRoute, CatalogUpstream } from '../catalog/catalog-schema.ts';

/** How one way stands just now, for people to read. */
export interface WayState {
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** Until the breaker lets a probe through; 0 unless it is open. */
  readonly pauseMs: number;
  /** Accounts whose calls failed lately: where the breaker is open, it is so to these at least. */
  readonly failedAccounts: number;
  /** Calls that ended in the breaker's window. */
  readonly succeeded: number;
  readonly failed: number;
  /** Calls in that window that were refused over a limit: counted neither as one nor the other. */
  readonly rateLimited: number;
  /** Calls under way at the way's upstream, of all workers. */
  readonly calls: number;
  /** Null where the key is in use; `isForAll` unless it is set aside for some accounts alone. */
  readonly setAside: { readonly forMs: number; readonly reason: string; readonly isForAll: boolean } | null;
}

/** What all workers know of routes and keys; written by the scripts of routing alone. */
export class RouteStateStore {
  readonly #redis: RedisClient;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** @throws AppError `service_unavailable` */
  async read(way: RouteWay, nowMs: number): Promise<WayState> {
    const { route } = way;
    const { keys } = slotsOf(way);
    const fields = setAsideFields(way);
    const [health, failedAccounts, forAll, forSome, calls] = await callRedis(() =>
      Promise.all([
        this.#redis.hgetall(redisKeys.routeHealth(route.id)),
        this.#redis.zcount(redisKeys.failedOn(route.id), nowMs - breakerRules.failedMs, '+inf'),
        this.#redis.hmget(redisKeys.keysSetAside(route.upstream.name), fields.key, fields.keyOnRoute),
        this.#redis.hmget(redisKeys.keysSetAside(route.upstream.name), fields.keyForSome),
        this.#redis.zcount(keys[0]!, nowMs, '+inf'),
      ]),
    );
    const setAside = readSetAside(forAll, nowMs, true) ?? readSetAside(forSome, nowMs, false);
    return { ...readHealth(health, nowMs), failedAccounts, calls, setAside };
  }

  /** Forgets why an upstream's keys are set aside and that its routes failed: all are called again at once. */
  async reset(upstream: CatalogUpstream, routes: readonly CatalogRoute[]): Promise<void> {
    const names = routes
      .flatMap(findWays)
      .flatMap(({ route: { id }, fingerprint }) => [
        redisKeys.routeHealth(id),
        redisKeys.servedOn(id),
        redisKeys.failedOn(id),
        redisKeys.struckOn(id),
        redisKeys.servedBy(id, fingerprint),
        redisKeys.refusedTo(id, fingerprint),
      ]);
    await callRedis(() => this.#redis.del(redisKeys.keysSetAside(upstream.name), ...names));
  }
}

/** Every way of these routes, with its state. */
export async function readWays(
  store: RouteStateStore,
  routes: readonly CatalogRoute[],
  nowMs: number,
): Promise<{ way: RouteWay; state: WayState }[]> {
  return await Promise.all(
    routes.flatMap(findWays).map(async (way) => ({ way, state: await store.read(way, nowMs) })),
  );
}

type Health = Pick<WayState, 'breaker' | 'pauseMs' | 'succeeded' | 'failed' | 'rateLimited'>;

function readHealth(health: Readonly<Record<string, string>>, nowMs: number): Health {
  const current = Math.floor(nowMs / breakerRules.bucketMs);
  let succeeded = 0;
  let failed = 0;
  let rateLimited = 0;
  for (let place = 0; place < breakerRules.buckets; place++) {
    const at = Number(health[`at:${place}`] ?? -1);
    if (at <= current - breakerRules.buckets) continue;
    succeeded += Number(health[`ok:${place}`] ?? 0);
    failed += Number(health[`bad:${place}`] ?? 0);
    rateLimited += Number(health[`limited:${place}`] ?? 0);
  }
  const openUntil = health['until'];
  const pauseMs = Math.max(0, Number(openUntil ?? 0) - nowMs);
  const breaker = openUntil === undefined ? 'closed' : pauseMs > 0 ? 'open' : 'half-open';
  return { breaker, pauseMs, succeeded, failed, rateLimited };
}

function readSetAside(
  texts: readonly (string | null)[],
  nowMs: number,
  isForAll: boolean,
): WayState['setAside'] {
  const entries = texts.flatMap((text) => {
    const [, untilMs, reason = ''] = /^(\d+) (.*)$/s.exec(text ?? '') ?? [];
    const forMs = Number(untilMs ?? 0) - nowMs;
    return forMs > 0 ? [{ forMs, reason, isForAll }] : [];
  });
  return entries.sort((a, b) => b.forMs - a.forMs)[0] ?? null;
}
