import { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { AdminContext } from './command.ts';

/** Opens the catalog for one command, as the api and workers read it. */
export async function withCatalog<T>(
  { config, env, redis, log }: AdminContext,
  use: (catalog: CatalogStore) => Promise<T> | T,
): Promise<T> {
  const catalog = await CatalogStore.open({ path: config.catalogPath, env, redis, log });
  try {
    return await use(catalog);
  } finally {
    catalog.close();
  }
}
