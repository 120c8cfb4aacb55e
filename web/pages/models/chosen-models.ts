import type { FilterChanges } from '../../lib/address-filters.ts';
import type { Model } from '../../lib/models.ts';

/** More do not fit beside each other. */
export const maxChosen = 4;

/** The models that the address names, in its order. Unknown ones are left out. */
export function readChosen(filters: URLSearchParams, models: readonly Model[]): Model[] {
  const ids = new Set(filters.get('models')?.split(',').slice(0, maxChosen));
  return [...ids].flatMap((id) => models.filter((model) => model.id === id));
}

/** The change of the address that adds or removes a model. */
export function toggleChosen(chosen: readonly Model[], id: string): FilterChanges {
  const others = chosen.map((model) => model.id).filter((other) => other !== id);
  const ids = others.length < chosen.length ? others : [...others, id].slice(-maxChosen);
  return { models: ids.length === 0 ? null : ids.join(',') };
}
