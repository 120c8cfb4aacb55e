import type { ApiContext } from '../middleware/request-context.ts';
import { presentModelStatus, presentSummary } from '../present/figures.ts';
import type { Services } from '../services.ts';

/** Whether a model is turned off is no figure: the catalog tells it as it is now. */
export function getModelsStatus({ catalog, modelTraffic }: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { value: traffic, validForMs } = await modelTraffic.get();
    allowCaching(context, validForMs);
    context.body = Object.fromEntries(
      catalog.current.models.map((model) => [
        model.id,
        presentModelStatus(model.type, catalog.isActive(model), traffic.get(model.id)),
      ]),
    );
  };
}

export function getLogsSummary({ totalTraffic }: Services) {
  return async (context: ApiContext): Promise<void> => {
    const { value: totals, validForMs } = await totalTraffic.get();
    allowCaching(context, validForMs);
    context.body = presentSummary(totals);
  };
}

/** Until the figures change, and not a moment longer. */
function allowCaching(context: ApiContext, validForMs: number): void {
  context.set('cache-control', `public, max-age=${Math.floor(validForMs / 1_000)}`);
}
