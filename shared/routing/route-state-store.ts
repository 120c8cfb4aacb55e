import { callRedis, type RedisClient } from '../redis/redis-client.ts';
import { redisKeys } from '../redis/redis-keys.ts';
import { breakerRules } from './breaker-rules.ts';
import { setAsideFields, slotsOf } from './grant-script.ts';
import { findWays, type RouteWay } from './route-way.ts';
import type { CatalogRoute, CatalogUpstream } from '../catalog/catalog-schema.ts';

/** How one way stands just now, for people to read. */
export interface WayState {
  readonly breaker: 'closed' | 'open' | 'half-open';
  /** Until the breaker lets a probe through; 0 unless it is open. */
  readonly pauseMs: number;
  /** Calls that ended in the breaker's window. */
  readonly succeeded: number;
  readonly failed: number;
  /** Calls in that window that were refused over a limit: counted neither as one nor the other. */
  readonly rateLimited: number;
  /** Calls under way at the way's upstream, of all workers. */
  readonly calls: number;
  /** Null where the key is in use. */
  readonly setAside: { readonly forMs: number; readonly reason: string } | null;
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
    const [health, setAside, calls] = await callRedis(() =>
      Promise.all([
        this.#redis.hgetall(redisKeys.routeHealth(route.id)),
        this.#redis.hmget(redisKeys.keysSetAside(route.upstream.name), fields.key, fields.keyOnRoute),
        this.#redis.zcount(keys[0]!, nowMs, '+inf'),
      ]),
    );
    return { ...readHealth(health, nowMs), calls, setAside: readSetAside(setAside, nowMs) };
  }

  /** Forgets why an upstream's keys are set aside and that its routes failed: all are called again at once. */
  async reset(upstream: CatalogUpstream, routes: readonly CatalogRoute[]): Promise<void> {
    await callRedis(() =>
      this.#redis.del(
        redisKeys.keysSetAside(upstream.name),
        ...routes.map((route) => redisKeys.routeHealth(route.id)),
      ),
    );
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

function readSetAside(texts: readonly (string | null)[], nowMs: number): WayState['setAside'] {
  const entries = texts.flatMap((text) => {
    const [, untilMs, reason = ''] = /^(\d+) (.*)$/s.exec(text ?? '') ?? [];
    const forMs = Number(untilMs ?? 0) - nowMs;
    return forMs > 0 ? [{ forMs, reason }] : [];
  });
  return entries.sort((a, b) => b.forMs - a.forMs)[0] ?? null;
}
