import type { CatalogModel } from '../catalog/catalog-schema.ts';
import type { CatalogStore } from '../catalog/catalog-store.ts';
import { publishInvalidation } from '../platform/redis/invalidation-channel.ts';
import { callRedis, type RedisClient } from '../platform/redis/redis-client.ts';
import { redisKeys } from '../platform/redis/redis-keys.ts';
import { readCandidates, RouteStateStore } from '../routing/route-state-store.ts';
import { CacheUseStore } from '../work/cache-use-store.ts';
import type { AuditTrail } from './audit-trail.ts';
import { describeStop } from './describe-stop.ts';
import { writeOperatorReason } from './operator-reasons.ts';

type Catalog = Pick<CatalogStore, 'current' | 'isActive' | 'isDisabled' | 'isDrained' | 'refreshDisabled'>;

/**
 * Describes a model.
 * @param place where the keys of its upstreams may be missing, such as `in this shell`
 * @param stopReasons why none of its routes can be called
 */
export function describeModel(
  model: CatalogModel,
  catalog: Catalog,
  place: string,
  stopReasons: readonly string[] = [],
) {
  return {
    id: model.id,
    type: model.type,
    active: catalog.isActive(model),
    disabled: catalog.isDisabled(model),
    not_served: explain(model, catalog, place, stopReasons),
    context: model.context,
    aliases: model.aliases,
    routes: model.routes.map((route) => `${route.upstream.name}/${route.model}`),
    pricing: model.pricing,
  };
}

/** Why upstreams of a model cannot be used, each reason once. */
export const listUpstreamProblems = (
  { unusableRoutes }: Pick<CatalogStore['current'], 'unusableRoutes'>,
  { id }: CatalogModel,
): string[] => [...new Set((unusableRoutes.get(id) ?? []).flatMap(({ problems }) => problems))];

/** Explains why requests for the model currently fail. Returns null if there is no known reason. */
function explain(
  model: CatalogModel,
  catalog: Catalog,
  place: string,
  stopReasons: readonly string[],
): string | null {
  const reasons: string[] = [];
  if (catalog.isDisabled(model)) reasons.push(writeOperatorReason('modelDisabled', { model: model.id }));
  if (model.routes.length === 0)
    reasons.push(...listUpstreamProblems(catalog.current, model).map((problem) => `${problem} ${place}`));
  else if (model.routes.every((route) => catalog.isDrained(model, route)))
    reasons.push(writeOperatorReason('allRoutesDrained'));
  // The caller passes these only if no candidate can be called.
  reasons.push(...stopReasons);
  return reasons.length === 0 ? null : reasons.join('; ');
}

/** Returns why none of the model's routes can be called. Empty if at least one can. */
async function findStopReasons(store: RouteStateStore, { routes }: CatalogModel): Promise<string[]> {
  const candidates = await readCandidates(store, routes, Date.now());
  const reasons = candidates.map(({ candidate, state }) => {
    const reason = describeStop(state);
    return reason === null ? null : `${candidate.route.upstream.name}: ${reason}`;
  });
  return reasons.every((reason) => reason !== null) ? [...new Set(reasons)] : [];
}

/** Describes all models of the catalog. See `describeModel` for `place`. */
export async function listModels(
  { redis }: { readonly redis: RedisClient },
  catalog: Catalog,
  place: string,
) {
  const cacheUse = new CacheUseStore(redis);
  const routeStates = new RouteStateStore(redis);
  return await Promise.all(
    catalog.current.models.map(async (model) => ({
      ...describeModel(model, catalog, place, await findStopReasons(routeStates, model)),
      embedding_cache: model.embeddingCache === null ? null : await cacheUse.read(model.id),
    })),
  );
}

/** Switches a model on or off. Takes effect within a second in every process. */
export async function switchModel(
  { redis }: { readonly redis: RedisClient },
  trail: AuditTrail,
  catalog: Catalog,
  model: CatalogModel,
  isOn: boolean,
): Promise<void> {
  await catalog.refreshDisabled();
  await trail.run(
    {
      action: isOn ? 'model.enable' : 'model.disable',
      id: model.id,
      before: { disabled: catalog.isDisabled(model) },
    },
    async () => {
      if (isOn) await callRedis(() => redis.srem(redisKeys.disabledModels, model.id));
      else await callRedis(() => redis.sadd(redisKeys.disabledModels, model.id));
      await publishInvalidation(redis, { kind: 'models' });
      await catalog.refreshDisabled();
    },
    () => ({ disabled: !isOn }),
  );
}
