import { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { AdminContext, AdminVerb } from './command.ts';

export const modelVerbs: Record<string, AdminVerb> = {
  list: { usage: '', positionals: 0, options: [], run: listModels },
};

async function listModels({ config, env, redis, log }: AdminContext): Promise<unknown> {
  const catalog = await CatalogStore.open({ path: config.catalogPath, env, redis, log });
  try {
    return catalog.current.models.map((model) => ({
      id: model.id,
      type: model.type,
      active: catalog.isActive(model),
      context: model.context,
      aliases: model.aliases,
      routes: model.routes.map((route) => `${route.upstream.name}/${route.model}`),
      pricing: model.pricing,
    }));
  } finally {
    catalog.close();
  }
}
