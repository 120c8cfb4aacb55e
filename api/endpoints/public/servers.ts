import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import type { Services } from '../../services.ts';
import { servePrepared } from '../../responses/send-prepared.ts';
import type { Server } from '../../../shared/contract/system.ts';

/** Addresses change only with the configuration, which requires a restart. */
const cacheControl = 'public, max-age=300';

const descriptions = {
  main: 'Main server. Use it by default.',
  backup: 'Backup server. Use it when the main server does not respond.',
  direct:
    'Direct connection, without a load balancer. Use it for automation software that has trouble with load balancers.',
} as const satisfies Record<Server['name'], string>;

export const listServers = defineEndpoint(operations.listServers, [beginInTurns], (services) =>
  servePrepared(() => prepareServers(services), cacheControl),
);

function prepareServers({ config: { backupUrl, directUrl }, publicUrl }: Services): PreparedBody {
  return PreparedBody.ofJson([
    presentServer('main', publicUrl),
    ...(backupUrl === null ? [] : [presentServer('backup', backupUrl)]),
    ...(directUrl === null ? [] : [presentServer('direct', directUrl)]),
  ]);
}

/** @param url without a trailing slash and without the version segment */
export function presentServer(name: Server['name'], url: string): Server {
  const baseUrl = `${url}/v1`;
  return {
    name,
    description: descriptions[name],
    base_url: baseUrl,
    health_url: `${baseUrl}/health`,
    server_url: url,
  };
}
