import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const distFolder = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A compiled file, by its place under dist/. */
export function dist(path: string): string {
  return join(distFolder, path);
}
