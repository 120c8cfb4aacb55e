import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import { publishInvalidation } from '../../shared/redis/invalidation-channel.ts';
import { redisKeys } from '../../shared/redis/redis-keys.ts';
import { CacheUseStore } from '../../shared/vector-cache/cache-use-store.ts';
import { RefusedError, type AdminContext, type AdminVerb } from './command.ts';
import { withCatalog } from './with-catalog.ts';

export const modelVerbs: Record<string, AdminVerb> = {
  list: { usage: '', positionals: 0, options: [], run: listModels },
  disable: { usage: '<id>', positionals: 1, options: [], run: (context) => switchModel(context, false) },
  enable: { usage: '<id>', positionals: 1, options: [], run: (context) => switchModel(context, true) },
};

function describeModel(model: CatalogModel, active: boolean) {
  return {
    id: model.id,
    type: model.type,
    active,
    context: model.context,
    aliases: model.aliases,
    routes: model.routes.map((route) => `${route.upstream.name}/${route.model}`),
    pricing: model.pricing,
  };
}

async function listModels(context: AdminContext): Promise<unknown> {
  const cacheUse = new CacheUseStore(context.redis);
  return await withCatalog(context, (catalog) =>
    Promise.all(
      catalog.current.models.map(async (model) => ({
        ...describeModel(model, catalog.isActive(model)),
        embedding_cache: model.embeddingCache === null ? null : await cacheUse.read(model.id),
      })),
    ),
  );
}

/** Holds within a second in every process. */
async function switchModel(context: AdminContext, isOn: boolean): Promise<unknown> {
  const { positionals, redis } = context;
  return await withCatalog(context, async (catalog) => {
    const model = catalog.find(positionals[0]!);
    if (model === undefined) throw new RefusedError(`There is no model "${positionals[0]}" in the catalog.`);
    if (isOn) await redis.srem(redisKeys.disabledModels, model.id);
    else await redis.sadd(redisKeys.disabledModels, model.id);
    await publishInvalidation(redis, { kind: 'models' });
    await catalog.refreshDisabled();
    return describeModel(model, catalog.isActive(model));
  });
}
