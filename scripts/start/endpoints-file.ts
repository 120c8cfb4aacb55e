import { rmSync } from 'node:fs';
import { endpointsPath, type Endpoints } from '../../shared/runtime/config.ts';
import { readPrivateFile, writePrivateFile } from './private-file.ts';

/** Leaves the running stack's endpoints for `api`, `worker` and `admin` of this machine. */
export function writeEndpoints(dataDir: string, endpoints: Endpoints): void {
  writePrivateFile(endpointsPath(dataDir), { ...endpoints, pid: process.pid } satisfies Endpoints);
}

/** Removes them, unless a later supervisor wrote its own. */
export function removeEndpoints(dataDir: string): void {
  const path = endpointsPath(dataDir);
  if ((readPrivateFile(path) as Endpoints | null)?.pid === process.pid) rmSync(path, { force: true });
}
