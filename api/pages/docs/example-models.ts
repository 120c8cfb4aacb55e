import type { Catalog } from '../../../shared/catalog/catalog-schema.ts';
import type { ModelType } from '../../../shared/contract/models.ts';

/** Where the models of examples are looked up. */
export type ModelSource = Pick<Catalog, 'models' | 'find'>;

/** The models that examples and guides name. */
const exampleModels: Readonly<Record<string, readonly ModelType[]>> = {
  'demo-echo': ['chat', 'vision'],
  'demo-svg-image': ['image'],
  'demo-image-edit': ['image'],
  'use-lite-en-512': ['embedding'],
};

/** Replaces models of the examples that a catalog lacks by the first one of the same type that it has. */
export function useCatalogModels(text: string, catalog: ModelSource): string {
  let replaced = text;
  for (const [id, types] of Object.entries(exampleModels)) {
    if (catalog.find(id) !== undefined) continue;
    const other = catalog.models.find(({ type }) => types.includes(type));
    if (other !== undefined) replaced = replaced.replaceAll(id, other.id);
  }
  return replaced;
}
