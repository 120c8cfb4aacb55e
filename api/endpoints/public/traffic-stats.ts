import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { presentModelStatus, presentSummary } from './present-traffic-stats.ts';
import { PreparedBodies, PreparedBody } from '../../http/responses/prepared-body.ts';
import { sendPrepared } from '../../responses/send-prepared.ts';

/** Whether a model is disabled comes from the current catalog, not from the stats. */
export const getModelsStatus = defineEndpoint(
  operations.getModelsStatus,
  [beginInTurns],
  ({ catalog, modelTraffic }) => {
    const bodies = new PreparedBodies();
    return async (context) => {
      const { value: traffic, validForMs } = await modelTraffic.get();
      const body = bodies.get([traffic, ...catalog.state], '', () => {
        const statuses = catalog.current.models.map((model) => [
          model.id,
          presentModelStatus(model.type, catalog.isActive(model), traffic.get(model.id)),
        ]);
        return PreparedBody.ofJson(Object.fromEntries(statuses));
      });
      await sendPrepared(context, body, cacheUntilChange(validForMs));
    };
  },
);

export const getLogsSummary = defineEndpoint(
  operations.getLogsSummary,
  [beginInTurns],
  ({ totalTraffic }) => {
    const bodies = new PreparedBodies();
    return async (context) => {
      const { value: totals, validForMs } = await totalTraffic.get();
      const body = bodies.get([totals], '', () => PreparedBody.ofJson(presentSummary(totals)));
      await sendPrepared(context, body, cacheUntilChange(validForMs));
    };
  },
);

/** Makes responses cacheable until the stats change. */
const cacheUntilChange = (validForMs: number): string => `public, max-age=${Math.floor(validForMs / 1_000)}`;
