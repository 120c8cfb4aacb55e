import type { ApiContext } from '../middleware/request-context.ts';
import { presentServer } from '../present/servers.ts';
import type { Services } from '../services.ts';

export function listServers(services: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { backupUrl, directUrl } = services.config;
    context.body = [
      presentServer('main', services.publicUrl),
      ...(backupUrl === null ? [] : [presentServer('backup', backupUrl)]),
      ...(directUrl === null ? [] : [presentServer('direct', directUrl)]),
    ];
  };
}
