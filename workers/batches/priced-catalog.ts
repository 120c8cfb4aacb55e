import type { CatalogModel } from '../../shared/catalog/catalog-schema.ts';
import type { CatalogStore } from '../../shared/catalog/catalog-store.ts';
import { acceptsModelType, type BatchEndpoint } from '../../shared/contract/batch-terms.ts';
import type { ModelCatalog } from '../../shared/preparing/preparation.ts';
import type { BatchPlan } from './batch-plan.ts';

/** The catalog with the prices at the creation of a batch. Models that it did not have then do not exist. */
export function createPricedCatalog(
  catalog: Pick<CatalogStore, 'current' | 'find' | 'isActive'>,
  { prices, endpoint }: BatchPlan,
): ModelCatalog {
  const models = new Map<string, CatalogModel | undefined>();
  return {
    current: catalog.current,
    isActive: (model) => catalog.isActive(model),
    find: (name) => {
      if (models.has(name)) return models.get(name);
      const model = catalog.find(name);
      const price = model === undefined ? undefined : prices.get(model.id);
      let found: CatalogModel | undefined;
      if (model !== undefined && price !== undefined)
        found = { ...model, pricing: price.pricing, priceVersion: price.version };
      // A model of another type has no price here. The line is told of its type.
      else if (model !== undefined && !acceptsModelType(endpoint as BatchEndpoint, model.type)) found = model;
      models.set(name, found);
      return found;
    },
  };
}
