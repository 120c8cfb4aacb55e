import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { unreadableCatalog } from '../../shared/catalog/catalog-store.ts';
import { parseCatalog } from '../../shared/catalog/parse-catalog.ts';

/**
 * Reads the catalog before anything starts: api and worker need it and would otherwise be restarted for ever.
 * @throws ConfigError that names every problem with its place
 */
export async function checkCatalogFile(path: string, env: NodeJS.ProcessEnv): Promise<void> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw unreadableCatalog(resolve(path), error);
  }
  parseCatalog(text, { env, fileName: path, today: new Date().toISOString().slice(0, 10) });
}
