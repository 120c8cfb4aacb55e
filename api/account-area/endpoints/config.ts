import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import { servePrepared } from '../../responses/send-prepared.ts';
import { describeWebConfig } from '../describe-web-config.ts';

/** Changes only with the configuration, which requires a restart. */
const cacheControl = 'public, max-age=300';

export const getWebConfig = defineEndpoint(operations.getWebConfig, [beginInTurns], (services) =>
  servePrepared(() => PreparedBody.ofJson(describeWebConfig(services)), cacheControl),
);
