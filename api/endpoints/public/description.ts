import { operations } from '../../contract/operations.ts';
import { describeApi } from '../../description/describe-api.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import { servePrepared } from '../../responses/send-prepared.ts';

/** The description changes only with the program version, but a new version should be visible soon. */
const cacheControl = 'public, max-age=300';

export const getDescription = defineEndpoint(operations.getDescription, [beginInTurns], (services) =>
  servePrepared(() => PreparedBody.ofJson(describeApi(services.publicUrl)), cacheControl),
);
