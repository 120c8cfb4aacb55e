import type { Pricing } from '../contract/models.ts';
import type { CatalogModel, CatalogRoute, CatalogUpstream } from '../catalog/catalog-schema.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import { publishInvalidation } from '../platform/redis/invalidation-channel.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { nameDrained } from '../catalog/drained-routes.ts';
import type { RouteCandidate } from '../routing/route-candidate.ts';
import { readDemand } from '../work/demand/read-demand.ts';
import { readCandidates, RouteStateStore, type CandidateState } from '../routing/route-state-store.ts';
import type { AuditTrail } from './audit-trail.ts';
import { describePartialStop, describeRefusal, describeStop } from './describe-stop.ts';
import { writeOperatorReason } from './operator-reasons.ts';

type Catalog = Pick<
  CatalogStore,
  'current' | 'find' | 'isDisabled' | 'isDrained' | 'isUpstreamDrained' | 'refreshDisabled'
>;

interface Deps {
  readonly redis: RedisClient;
}

/** Begins a key whose variable is not set in the operator's shell, followed by the variable's name. */
export const unsetKey = 'unset:';

/** An upstream, or its routes of one model. */
export interface RoutesOf {
  readonly upstream: CatalogUpstream;
  /** Null for all models. */
  readonly model: CatalogModel | null;
}

const nameRoutes = ({ upstream, model }: RoutesOf): string => nameDrained(upstream.name, model?.id ?? null);

export const findUpstream = ({ current }: Catalog, name: string): CatalogUpstream | undefined =>
  current.upstreams.find((one) => one.name === name);

/**
 * Lists a row per key of each route: whether it can be called, and if not, why.
 * @param of only these; null for all
 */
export async function describeRoutes({ redis }: Deps, catalog: Catalog, of: RoutesOf | null) {
  const store = new RouteStateStore(redis);
  const nowMs = Date.now();
  const { work } = await readDemand({ redis, catalog });
  const countWaiting = ({ id }: CatalogModel): number =>
    work.reduce((sum, one) => (one.model === id ? sum + one.waitingForSlot : sum), 0);
  const rows = await Promise.all(
    catalog.current.models.map(async (model) => {
      const candidates = await readCandidates(store, listRoutes(model, of), nowMs);
      return candidates.map(({ candidate, state }) => ({
        ...describeCandidate(model, catalog, candidate, state),
        waiting_for_slot: countWaiting(model),
      }));
    }),
  );
  return rows.flat();
}
export type DescribedRoute = Awaited<ReturnType<typeof describeRoutes>>[number];

/** The routes of a model that are meant. */
export const listRoutes = (model: CatalogModel, of: RoutesOf | null): CatalogRoute[] =>
  model.routes.filter(
    (route) =>
      of === null ||
      (route.upstream.name === of.upstream.name && (of.model === null || of.model.id === model.id)),
  );

function describeCandidate(
  model: CatalogModel,
  catalog: Catalog,
  { route, apiKey, fingerprint }: RouteCandidate,
  state: CandidateState,
) {
  const { upstream } = route;
  // Never show the key itself. Show its position in the catalog and its name in the logs.
  const position = `${upstream.apiKeys.indexOf(apiKey ?? '') + 1} of ${upstream.apiKeys.length}`;
  const variable = apiKey?.startsWith(unsetKey) === true ? apiKey.slice(unsetKey.length) : null;
  const isDrained = catalog.isDrained(model, route);
  const disabled = catalog.isDisabled(model)
    ? writeOperatorReason('modelOfRouteDisabled', { model: model.id })
    : isDrained
      ? writeOperatorReason('routeDrained', { upstream: upstream.name })
      : null;
  const missing = variable === null ? null : writeOperatorReason('unsetInShell', { variable });
  return {
    ...describeRoute(model, route),
    usable: true,
    key: apiKey === null ? null : `${position} (${missing ?? fingerprint})`,
    not_called: disabled ?? describeStop(state) ?? missing ?? describePartialStop(state),
    last_refusal: describeRefusal(state.lastRefusal),
    drained: isDrained,
    upstream_drained: catalog.isUpstreamDrained(upstream.name),
    breaker: state.breaker,
    failed_accounts: state.failedAccounts,
    pause_seconds: Math.ceil(state.pauseMs / 1_000),
    succeeded: state.succeeded,
    failed: state.failed,
    rate_limited: state.rateLimited,
    calls: state.calls,
    max_calls: upstream.maxConcurrency,
  };
}

/** What the catalog says of a route. */
function describeRoute({ id }: CatalogModel, { upstream, model, weight, cost }: CatalogRoute) {
  const { name, kind, baseUrl } = upstream;
  return {
    model: id,
    upstream: name,
    upstream_model: model,
    kind,
    // Paths and queries of addresses may contain secrets.
    host: baseUrl === '' ? null : new URL(baseUrl).host,
    weight,
    cost: cost === null ? null : describeCost(cost),
  };
}

/** Vendors have neither days of use nor free requests. */
const describeCost = (cost: Pricing): object =>
  Object.fromEntries(
    Object.entries(cost).filter(([name]) => name !== 'date_of_use' && name !== 'free_requests'),
  );

/**
 * Lists the routes whose upstreams have no usable keys, in rows like those of `describeRoutes`.
 * @param place where the keys are missing, such as `in this shell`
 */
export const describeUnusableRoutes = (catalog: Catalog, place: string): DescribedRoute[] =>
  catalog.current.models.flatMap((model) =>
    (catalog.current.unusableRoutes.get(model.id) ?? []).map(({ route, problems }) => ({
      ...describeRoute(model, route),
      usable: false,
      key: null,
      not_called: problems.map((problem) => `${problem} ${place}`).join('; '),
      last_refusal: null,
      drained: catalog.isDrained(model, route),
      upstream_drained: catalog.isUpstreamDrained(route.upstream.name),
      breaker: 'closed' as const,
      failed_accounts: 0,
      pause_seconds: 0,
      succeeded: 0,
      failed: 0,
      rate_limited: 0,
      calls: 0,
      max_calls: route.upstream.maxConcurrency,
      waiting_for_slot: 0,
    })),
  );

/** Closes circuit breakers and ends cooldowns of keys, for an operator who does not want to wait for the next probe. */
export async function resetRoutes(
  deps: Deps,
  trail: AuditTrail,
  catalog: Catalog,
  of: RoutesOf,
): Promise<readonly DescribedRoute[]> {
  const routes = catalog.current.models.flatMap((model) => listRoutes(model, of));
  const store = new RouteStateStore(deps.redis);
  return await trail.run(
    {
      action: 'upstream.reset',
      id: nameRoutes(of),
      before: summarize(await describeRoutes(deps, catalog, of)),
    },
    async () => {
      await (of.model === null ? store.reset(of.upstream, routes) : store.resetRoutes(of.upstream, routes));
      return await describeRoutes(deps, catalog, of);
    },
    summarize,
  );
}

const summarize = (rows: readonly DescribedRoute[]): object => ({
  breakers_open: rows.filter(({ breaker }) => breaker !== 'closed').length,
  not_called: rows.filter((row) => row.not_called !== null).length,
});

/**
 * Drains routes, or ends that: drained ones get no further calls, and those that run continue. Lasts until it is ended,
 * and holds within a second in every worker.
 */
export async function drainRoutes(
  deps: Deps,
  trail: AuditTrail,
  catalog: Catalog,
  of: RoutesOf,
  isDrained: boolean,
): Promise<readonly DescribedRoute[]> {
  const { redis } = deps;
  const name = nameRoutes(of);
  const readWhole = async (): Promise<object> => ({
    drained: await callRedis(() => redis.smembers(redisKeys.drainedRoutes)),
  });
  const { rows } = await trail.run(
    { action: isDrained ? 'upstream.drain' : 'upstream.undrain', id: name, before: await readWhole() },
    async () => {
      if (isDrained) await callRedis(() => redis.sadd(redisKeys.drainedRoutes, name));
      else await callRedis(() => redis.srem(redisKeys.drainedRoutes, name));
      await publishInvalidation(redis, { kind: 'models' });
      await catalog.refreshDisabled();
      return { rows: await describeRoutes(deps, catalog, of), after: await readWhole() };
    },
    ({ after }) => after,
  );
  return rows;
}
