import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { authenticateMetrics } from '../../http/middleware/authenticate-metrics.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';

export const getMetrics = defineEndpoint(
  operations.getMetrics,
  [beginInTurns, authenticateMetrics],
  ({ metrics, writeMetrics }) =>
    async (context) => {
      const text = await writeMetrics();
      context.set('content-type', metrics.contentType);
      context.body = text;
    },
);
