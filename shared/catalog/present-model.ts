import type { Model } from '../contract/models.ts';
import type { CatalogModel } from './catalog-schema.ts';

/** Converts a model to its public form. */
export function presentModel(model: CatalogModel, active: boolean): Model {
  return { ...model.published, active };
}
