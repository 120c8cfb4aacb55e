import type { CatalogRoute } from './catalog-schema.ts';
import { nameDrained } from './name-drained.ts';

/** Whether a model's route is among the drained ones. */
export const isRouteDrained = (
  drained: ReadonlySet<string>,
  modelId: string,
  { upstream }: Pick<CatalogRoute, 'upstream'>,
): boolean => drained.has(upstream.name) || drained.has(nameDrained(upstream.name, modelId));
