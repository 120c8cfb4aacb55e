import type { Catalog } from '../../../shared/catalog/catalog-schema.ts';
import type { Found } from '../../../shared/admin/find-anything.ts';

/** Shorter texts would find a part of all. */
const minLength = 2;
const maxOfKind = 5;

/** Finds models and upstreams of the catalog by a part of their names. Pure. */
export function findInCatalog(
  { models, upstreams }: Pick<Catalog, 'models' | 'upstreams'>,
  text: string,
): Found[] {
  const wanted = text.trim().toLowerCase();
  if (wanted.length < minLength) return [];
  const pick = (kind: 'model' | 'upstream', names: readonly (readonly string[])[]): Found[] =>
    names
      .filter((own) => own.some((name) => name.toLowerCase().includes(wanted)))
      .slice(0, maxOfKind)
      .map(([id = '']) => ({ kind, id, account: null, label: id }));
  return [
    ...pick(
      'model',
      models.map(({ id, aliases }) => [id, ...aliases]),
    ),
    ...pick(
      'upstream',
      upstreams.map(({ name }) => [name]),
    ),
  ];
}
