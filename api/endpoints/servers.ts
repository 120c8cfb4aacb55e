import { PreparedBody } from '../present/prepared-body.ts';
import { presentServer } from '../present/servers.ts';
import type { Services } from '../services.ts';
import { servePrepared } from './send-prepared.ts';

/** Addresses change with the configuration alone, which takes a new start. */
const cacheControl = 'public, max-age=300';

export function listServers(services: Services) {
  return servePrepared(() => prepareServers(services), cacheControl);
}

function prepareServers({ config: { backupUrl, directUrl }, publicUrl }: Services): PreparedBody {
  return PreparedBody.ofJson([
    presentServer('main', publicUrl),
    ...(backupUrl === null ? [] : [presentServer('backup', backupUrl)]),
    ...(directUrl === null ? [] : [presentServer('direct', directUrl)]),
  ]);
}
