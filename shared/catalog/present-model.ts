import type { Model } from '../contract/models.ts';
import type { CatalogModel } from './catalog-schema.ts';

/** The model as callers see it. */
export function presentModel(model: CatalogModel, active: boolean): Model {
  return { ...model.published, active };
}
