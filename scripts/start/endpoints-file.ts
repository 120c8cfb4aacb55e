import { rmSync } from 'node:fs';
import { endpointsPath, type Endpoints } from '../../shared/platform/config/config.ts';
import { useDataFile } from './prepare-data-dir.ts';
import { readPrivateFile, writePrivateFile } from './private-file.ts';

/** Writes the running stack's endpoints for `api`, `worker` and `admin` on this machine. */
export function writeEndpoints(dataDir: string, endpoints: Endpoints): void {
  const path = endpointsPath(dataDir);
  const content = { ...endpoints, pid: process.pid } satisfies Endpoints;
  useDataFile(dataDir, path, () => writePrivateFile(path, content));
}

/** Removes the file, unless a later supervisor has written it. */
export function removeEndpoints(dataDir: string): void {
  const path = endpointsPath(dataDir);
  try {
    if ((readPrivateFile(path) as Endpoints | null)?.pid === process.pid) rmSync(path, { force: true });
  } catch {
    // If the file remains, it is ignored, because its process is gone.
  }
}
