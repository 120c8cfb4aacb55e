import { operations } from '../../contract/operations.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBodies, PreparedBody } from '../../http/responses/prepared-body.ts';
import { sendPrepared } from '../../responses/send-prepared.ts';
import type { ModelHour, ModelStatus, ModelType } from '../../../shared/contract/models.ts';
import { apiVersion, type LogsSummary } from '../../../shared/contract/system.ts';
import { chooseStatusMessage, toAverageSeconds, toSuccessRate, toTokensPerSecond } from './rates.ts';
import { noModelSums, type ModelSums, type TotalSums } from '../../../shared/ledger/request-sums.ts';
import { totalPeriodHours } from '../../../shared/ledger/request-stats-windows.ts';

/** Whether a model is disabled comes from the current catalog, not from the stats. */
export const getModelsStatus = defineEndpoint(
  operations.getModelsStatus,
  [beginInTurns],
  ({ catalog, modelStats }) => {
    const bodies = new PreparedBodies();
    return async (context) => {
      const { value: sums, validForMs } = await modelStats.get();
      const body = bodies.get([sums, ...catalog.state], '', () => {
        const statuses = catalog.current.models.map((model) => [
          model.id,
          presentModelStatus(model.type, catalog.isActive(model), sums.get(model.id)),
        ]);
        return PreparedBody.ofJson(Object.fromEntries(statuses));
      });
      await sendPrepared(context, body, cacheUntilChange(validForMs));
    };
  },
);

/** The models that the list of models shows. */
export const getModelsHistory = defineEndpoint(
  operations.getModelsHistory,
  [beginInTurns],
  ({ catalog, hourlyStats }) => {
    const bodies = new PreparedBodies();
    return async (context) => {
      const { value: hours, validForMs } = await hourlyStats.get();
      const body = bodies.get([hours, ...catalog.state], '', () => {
        const visible = catalog.current.models.filter(({ routes }) => routes.length > 0);
        return PreparedBody.ofJson(
          Object.fromEntries(
            visible.map(({ id, type }) => [
              id,
              hours.map(({ startMs, models }) => presentHour(startMs, type, models.get(id))),
            ]),
          ),
        );
      });
      await sendPrepared(context, body, cacheUntilChange(validForMs));
    };
  },
);

export const getLogsSummary = defineEndpoint(operations.getLogsSummary, [beginInTurns], ({ totalStats }) => {
  const bodies = new PreparedBodies();
  return async (context) => {
    const { value: totals, validForMs } = await totalStats.get();
    const body = bodies.get([totals], '', () => PreparedBody.ofJson(presentSummary(totals)));
    await sendPrepared(context, body, cacheUntilChange(validForMs));
  };
});

function presentModelStatus(type: ModelType, active: boolean, sums: ModelSums = noModelSums): ModelStatus {
  return {
    message: active ? chooseStatusMessage(sums) : 'Disabled',
    success_rate: toSuccessRate(sums),
    ...(type === 'image' ? {} : { tps: toTokensPerSecond(type, sums) }),
    art: toAverageSeconds(sums),
  };
}

function presentHour(startMs: number, type: ModelType, sums: ModelSums = noModelSums): ModelHour {
  const requests = sums.succeeded + sums.failed;
  return {
    hour: new Date(startMs).toISOString(),
    requests,
    success_rate: requests === 0 ? null : toSuccessRate(sums),
    tps: type === 'image' ? null : toTokensPerSecond(type, sums),
    art: toAverageSeconds(sums),
  };
}

function presentSummary(totals: TotalSums): LogsSummary {
  return {
    version: apiVersion,
    period_hours: totalPeriodHours,
    total_requests: totals.requests,
    total_tokens: totals.tokens,
    success_rate: toSuccessRate(totals),
  };
}

/** Makes responses cacheable until the stats change. */
const cacheUntilChange = (validForMs: number): string => `public, max-age=${Math.floor(validForMs / 1_000)}`;
