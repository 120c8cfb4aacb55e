import type { Server } from '../../../shared/contract/system.ts';

const descriptions = {
  main: 'The address to use.',
  backup: 'For when the main server does not answer.',
  direct: 'Without a load balancer before it: for automation that has trouble behind one.',
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
