import { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import type { AdminContext } from './command.ts';

/** The catalog as the roles read it, for one command. */
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
