import type { Server } from '../../../shared/contract/system.ts';

const descriptions = {
  main: 'Main server. Use it by default.',
  backup: 'Backup server. Use it when the main server does not respond.',
  direct:
    'Direct connection, without a load balancer. Use it for automation software that has trouble with load balancers.',
} as const satisfies Record<Server['name'], string>;

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
