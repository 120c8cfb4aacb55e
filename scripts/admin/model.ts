import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { publishInvalidation } from '../../shared/platform/redis/invalidation-channel.ts';
import { redisKeys } from '../../shared/platform/redis/redis-keys.ts';
import { readCandidates, RouteStateStore } from '../../shared/routing/route-state-store.ts';
import { CacheUseStore } from '../../shared/work/cache-use-store.ts';
import { CommandError, type AdminContext, type AdminVerb } from './command.ts';
import { describeStop } from './describe-stop.ts';
import { withCatalog } from './with-catalog.ts';

export const modelVerbs: Record<string, AdminVerb> = {
  list: {
    usage: '',
    help: 'lists the models in the catalog, and why any of them is not served',
    positionals: 0,
    options: [],
    run: listModels,
  },
  disable: {
    usage: '<id>',
    help: 'refuses requests for the model on all servers until it is enabled',
    positionals: 1,
    options: [],
    run: (context) => switchModel(context, false),
  },
  enable: {
    usage: '<id>',
    help: 'serves the model again',
    positionals: 1,
    options: [],
    run: (context) => switchModel(context, true),
  },
};

function describeModel(model: CatalogModel, catalog: CatalogStore, stopReasons: readonly string[] = []) {
  return {
    id: model.id,
    type: model.type,
    active: catalog.isActive(model),
    not_served: explain(model, catalog, stopReasons),
    context: model.context,
    aliases: model.aliases,
    routes: model.routes.map((route) => `${route.upstream.name}/${route.model}`),
    pricing: model.pricing,
  };
}

/** Explains why requests for the model currently fail. Returns null if there is no known reason. */
function explain(model: CatalogModel, catalog: CatalogStore, stopReasons: readonly string[]): string | null {
  const reasons: string[] = [];
  if (catalog.isDisabled(model)) reasons.push(`disabled by an operator: model enable ${model.id}`);
  if (model.routes.length === 0)
    reasons.push(
      ...(catalog.current.upstreamProblems.get(model.id) ?? []).map((problem) => `${problem} in this shell`),
    );
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

async function listModels(context: AdminContext): Promise<unknown> {
  const cacheUse = new CacheUseStore(context.redis);
  const routeStates = new RouteStateStore(context.redis);
  return await withCatalog(context, (catalog) =>
    Promise.all(
      catalog.current.models.map(async (model) => ({
        ...describeModel(model, catalog, await findStopReasons(routeStates, model)),
        embedding_cache: model.embeddingCache === null ? null : await cacheUse.read(model.id),
      })),
    ),
  );
}

/** Switches the model on or off. Takes effect within a second in every process. */
async function switchModel(context: AdminContext, isOn: boolean): Promise<unknown> {
  const { positionals, redis } = context;
  return await withCatalog(context, async (catalog) => {
    const model = catalog.find(positionals[0]!);
    if (model === undefined) throw new CommandError(`There is no model "${positionals[0]}" in the catalog.`);
    if (isOn) await redis.srem(redisKeys.disabledModels, model.id);
    else await redis.sadd(redisKeys.disabledModels, model.id);
    await publishInvalidation(redis, { kind: 'models' });
    await catalog.refreshDisabled();
    return describeModel(model, catalog);
  });
}
