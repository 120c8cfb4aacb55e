import type { Model } from '../../../shared/contract/models.ts';
import type { CatalogModel } from '../../../shared/catalog/catalog-schema.ts';

/** Converts a model to its public form. */
export function presentModel(model: CatalogModel, active: boolean): Model {
  return { ...model.published, active };
}
