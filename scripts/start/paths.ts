import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const distFolder = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Returns the path of a compiled file, given its path under dist/. */
export function dist(path: string): string {
  return join(distFolder, path);
}
