import { rmSync } from 'node:fs';
import { endpointsPath, type Endpoints } from '../../shared/runtime/config.ts';
import { tryOn } from './prepare-data-dir.ts';
import { readPrivateFile, writePrivateFile } from './private-file.ts';

/** Leaves the running stack's endpoints for `api`, `worker` and `admin` of this machine. */
export function writeEndpoints(dataDir: string, endpoints: Endpoints): void {
  const path = endpointsPath(dataDir);
  const content = { ...endpoints, pid: process.pid } satisfies Endpoints;
  tryOn(dataDir, path, () => writePrivateFile(path, content));
}

/** Removes them, unless a later supervisor wrote its own. */
export function removeEndpoints(dataDir: string): void {
  const path = endpointsPath(dataDir);
  try {
    if ((readPrivateFile(path) as Endpoints | null)?.pid === process.pid) rmSync(path, { force: true });
  } catch {
    // It stays behind; its process is gone, so that nobody believes it.
  }
}
