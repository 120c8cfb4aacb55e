import type { CatalogModel, CatalogRoute } from '../../../../shared/catalog/catalog-schema.ts';
import type { CatalogStore } from '../../../../shared/catalog/catalog-store.ts';
import { nameDrained } from '../../../../shared/catalog/drained-routes.ts';
import type { Overview } from '../../../contract/admin/overview.ts';
import type { UpstreamState } from '../../../operator/watch-upstreams.ts';

type Catalog = Pick<CatalogStore, 'current' | 'isDisabled' | 'isDrained' | 'isUpstreamDrained'>;
type Refusing = NonNullable<Overview['refusing_models']>[number];
type Cause = Refusing['causes'][number];

/**
 * Finds the configured models that can serve nobody now: disabled by an operator, or without a route that can be called.
 * Its work grows with the routes of the catalog. Pure.
 */
export function findRefusingModels(catalog: Catalog, upstreams: readonly UpstreamState[]): Refusing[] {
  const states = new Map(upstreams.map((state) => [state.name, state]));
  return catalog.current.models.flatMap((model) => {
    if (model.routes.length === 0) return [];
    const causes = catalog.isDisabled(model)
      ? [{ why: 'disabled' as const, upstream: null, reason: null, resource: `model:${model.id}` }]
      : model.routes.map((route) => findCause(catalog, states, model, route));
    return causes.every((cause) => cause !== null) ? [{ model: model.id, causes: onceEach(causes) }] : [];
  });
}

function findCause(
  catalog: Catalog,
  states: ReadonlyMap<string, UpstreamState>,
  model: CatalogModel,
  route: CatalogRoute,
): Cause | null {
  const { name } = route.upstream;
  if (catalog.isDrained(model, route)) {
    const ofModel = catalog.isUpstreamDrained(name) ? null : model.id;
    const resource = `upstream:${nameDrained(name, ofModel)}`;
    return { why: 'drained', upstream: name, reason: null, resource };
  }
  const stop = states.get(name)?.stops.get(route.id);
  return stop === undefined ? null : { ...stop, upstream: name, resource: null };
}

/** Several routes at an upstream may have the same cause. */
const onceEach = (causes: readonly Cause[]): Cause[] => [
  ...new Map(causes.map((cause) => [`${cause.why} ${cause.upstream}`, cause])).values(),
];
