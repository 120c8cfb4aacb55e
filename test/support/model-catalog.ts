import { parseCatalog } from '../../shared/catalog/parse-catalog.ts';
import type { ModelCatalog } from '../../shared/preparing/preparation.ts';

/** Reads the text of a catalog, none of whose models an administrator has disabled. */
export function createModelCatalog(text: string): ModelCatalog {
  const current = parseCatalog(text, { fileName: 'catalog.yaml', env: {}, today: '2026-01-01' });
  return { current, find: (id) => current.find(id), isActive: ({ routes }) => routes.length > 0 };
}
