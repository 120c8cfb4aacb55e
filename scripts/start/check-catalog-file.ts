import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { unreadableCatalog } from '../../shared/catalog/catalog-store.ts';
import { parseCatalog } from '../../shared/catalog/parse-catalog.ts';

/**
 * Reads the catalog before anything starts. Without a valid one, api and worker would be restarted forever.
 * @throws ConfigError that lists every problem with its position
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
