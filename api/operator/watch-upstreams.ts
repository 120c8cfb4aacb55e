import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { ProcessMetrics } from '../../shared/platform/metrics/process-metrics.ts';
import { callRedis, type RedisClient } from '../../shared/platform/redis/redis-client.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { isRefusal, type Refusal } from '../../shared/routing/cooldowns.ts';
import type { RouteCandidate } from '../../shared/routing/route-candidate.ts';
import {
  findNewest,
  readCandidates,
  RouteStateStore,
  type CandidateState,
} from '../../shared/routing/route-state-store.ts';
import type { RecentReading } from './recent-reading.ts';

export interface UpstreamSources {
  readonly redis: RedisClient;
  readonly catalog: Pick<CatalogStore, 'current'>;
}

export interface UpstreamState {
  readonly name: string;
  /** Ids of the models that it serves. */
  readonly models: readonly string[];
  readonly keys: number;
  readonly slots: number;
  readonly slotsUsed: number;
  /** Of the key that is set aside for longest. */
  readonly cooldownMs: number;
  /** Of its routes, those whose circuit breaker is not closed. */
  readonly openBreakers: number;
  /** That of the route that is worst off. */
  readonly breaker: CandidateState['breaker'];
  /** Of its keys: the last refusal after which no call with the key has succeeded; null if there is none. */
  readonly lastRefusal: Refusal | null;
  /** Routes at it that can be called for no account, by their ids, and why. */
  readonly stops: ReadonlyMap<string, RouteStop>;
}

export interface RouteStop {
  readonly why: 'breaker' | 'refused' | 'cooldown';
  /** Of a key's cooldown, for operators. */
  readonly reason: string | null;
}

const gauges: readonly (readonly [name: string, help: string, value: (state: UpstreamState) => number])[] = [
  ['upstream_slots', 'How many calls of an upstream run at a time at most.', ({ slots }) => slots],
  ['upstream_slots_used', 'Calls of an upstream that run, in all workers.', ({ slotsUsed }) => slotsUsed],
  [
    'upstream_cooldown_seconds',
    'For how long a key of an upstream is still set aside; of its keys, the longest.',
    ({ cooldownMs }) => cooldownMs / 1_000,
  ],
  [
    'upstream_breakers_open',
    'Routes of an upstream whose circuit breaker is open or lets only probes pass.',
    ({ openBreakers }) => openBreakers,
  ],
];

/**
 * Shows the state of upstreams, which all workers share. Each process that does so reads the same figures, so they must not
 * be added up.
 */
export function watchUpstreams(
  metrics: ProcessMetrics,
  states: RecentReading<readonly UpstreamState[]>,
): void {
  for (const [name, help, valueOf] of gauges)
    metrics.gauge(
      {
        name,
        help,
        aggregator: 'first',
        async collect() {
          this.reset();
          await states.use((all) => {
            for (const state of all) this.set({ upstream: state.name }, valueOf(state));
          });
        },
      },
      ['upstream'],
    );
}

const worstFirst = ['open', 'half-open', 'closed'] as const;

/** Reads the state of all upstreams. Its work grows with the routes of the catalog. @throws AppError `service_unavailable` */
export async function readUpstreams({ redis, catalog }: UpstreamSources): Promise<UpstreamState[]> {
  const nowMs = Date.now();
  const routes = catalog.current.models.flatMap((model) => model.routes);
  const candidates = await readCandidates(new RouteStateStore(redis), routes, nowMs);
  const upstreams = new Map(routes.map(({ upstream }) => [upstream.name, upstream]));
  return await Promise.all(
    Array.from(upstreams, async ([name, { maxConcurrency, apiKeys }]) => {
      const own = candidates.filter(({ candidate }) => candidate.route.upstream.name === name);
      const slotsUsed = await callRedis(() => redis.zcount(redisKeys.callsOfUpstream(name), nowMs, '+inf'));
      const open = own.filter(({ state }) => state.breaker !== 'closed');
      const served = catalog.current.models.filter(({ routes: own }) =>
        own.some(({ upstream }) => upstream.name === name),
      );
      return {
        name,
        models: served.map(({ id }) => id),
        keys: apiKeys.length,
        slots: maxConcurrency,
        slotsUsed,
        cooldownMs: Math.max(0, ...own.map(({ state }) => state.cooldown?.forMs ?? 0)),
        openBreakers: new Set(open.map(({ candidate }) => candidate.route.id)).size,
        breaker: worstFirst.find((breaker) => own.some(({ state }) => state.breaker === breaker)) ?? 'closed',
        lastRefusal: findNewest(own.map(({ state }) => state.lastRefusal)),
        stops: findStops(own),
      };
    }),
  );
}

interface Candidate {
  readonly candidate: RouteCandidate;
  readonly state: CandidateState;
}

/** Finds the routes none of whose candidates can be called. */
function findStops(candidates: readonly Candidate[]): Map<string, RouteStop> {
  const stops = new Map<string, RouteStop>();
  const callable = new Set<string>();
  for (const { candidate, state } of candidates) {
    const stop = findStop(state);
    if (stop === null) callable.add(candidate.route.id);
    else stops.set(candidate.route.id, stop);
  }
  for (const id of callable) stops.delete(id);
  return stops;
}

function findStop({ cooldown, breaker }: CandidateState): RouteStop | null {
  if (cooldown?.isForAll === true)
    return { why: isRefusal(cooldown) ? 'refused' : 'cooldown', reason: cooldown.reason };
  return breaker === 'open' ? { why: 'breaker', reason: null } : null;
}
