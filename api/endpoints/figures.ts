import type { ApiContext } from '../middleware/request-context.ts';
import { presentModelStatus, presentSummary } from '../present/figures.ts';
import { PreparedBodies, PreparedBody } from '../present/prepared-body.ts';
import type { Services } from '../services.ts';
import { sendPrepared } from './send-prepared.ts';

/** Whether a model is turned off is no figure: the catalog tells it as it is now. */
export function getModelsStatus({ catalog, modelTraffic }: Services) {
  const bodies = new PreparedBodies();
  return async (context: ApiContext): Promise<void> => {
    const { value: traffic, validForMs } = await modelTraffic.get();
    const body = bodies.get([traffic, ...catalog.state], '', () => {
      const statuses = catalog.current.models.map((model) => [
        model.id,
        presentModelStatus(model.type, catalog.isActive(model), traffic.get(model.id)),
      ]);
      return PreparedBody.ofJson(Object.fromEntries(statuses));
    });
    await sendPrepared(context, body, untilTheyChange(validForMs));
  };
}

export function getLogsSummary({ totalTraffic }: Services) {
  const bodies = new PreparedBodies();
  return async (context: ApiContext): Promise<void> => {
    const { value: totals, validForMs } = await totalTraffic.get();
    const body = bodies.get([totals], '', () => PreparedBody.ofJson(presentSummary(totals)));
    await sendPrepared(context, body, untilTheyChange(validForMs));
  };
}

/** Until the figures change, and not a moment longer. */
const untilTheyChange = (validForMs: number): string => `public, max-age=${Math.floor(validForMs / 1_000)}`;
