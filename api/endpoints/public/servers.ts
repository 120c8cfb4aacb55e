import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import { presentServer } from './present-servers.ts';
import type { Services } from '../../services.ts';
import { servePrepared } from '../../responses/send-prepared.ts';

/** Addresses change only with the configuration, which requires a restart. */
const cacheControl = 'public, max-age=300';

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
