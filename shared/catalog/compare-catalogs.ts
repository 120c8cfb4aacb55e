import type { Catalog } from './catalog-schema.ts';

export interface CatalogChanges {
  readonly modelsAdded: string[];
  readonly modelsRemoved: string[];
  readonly modelsChanged: string[];
  readonly upstreamsAdded: string[];
  readonly upstreamsRemoved: string[];
  readonly upstreamsChanged: string[];
}

/** Lists the differences by name only: an upstream contains secrets. */
export function compareCatalogs(before: Catalog, after: Catalog): CatalogChanges {
  const models = compareByName(before.models, after.models, (model) => model.id);
  const upstreams = compareByName(before.upstreams, after.upstreams, (upstream) => upstream.name);
  return {
    modelsAdded: models.added,
    modelsRemoved: models.removed,
    modelsChanged: models.changed,
    upstreamsAdded: upstreams.added,
    upstreamsRemoved: upstreams.removed,
    upstreamsChanged: upstreams.changed,
  };
}

function compareByName<T>(before: readonly T[], after: readonly T[], nameOf: (value: T) => string) {
  // A changed upstream is reported once, under its name, and not for each model that uses it.
  const serialize = (value: T): string =>
    JSON.stringify(value, (key, inner: unknown) =>
      key === 'upstream' ? (inner as { name: string }).name : inner instanceof Set ? [...inner] : inner,
    );
  const old = new Map(before.map((value) => [nameOf(value), serialize(value)]));
  const names = new Set(after.map(nameOf));
  return {
    added: [...names].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !names.has(name)),
    changed: after
      .filter((value) => (old.get(nameOf(value)) ?? serialize(value)) !== serialize(value))
      .map(nameOf),
  };
}
