import type { ModelStatus, ModelType } from '../../../shared/contract/models.ts';
import { apiVersion, type LogsSummary } from '../../../shared/contract/system.ts';
import { chooseStatusMessage, toAverageSeconds, toSuccessRate, toTokensPerSecond } from './rates.ts';
import { noModelSums, type ModelSums, type TotalSums } from '../../../shared/ledger/traffic-sums.ts';
import { totalPeriodHours } from '../../../shared/ledger/traffic-windows.ts';

export function presentModelStatus(
  type: ModelType,
  active: boolean,
  sums: ModelSums = noModelSums,
): ModelStatus {
  return {
    message: active ? chooseStatusMessage(sums) : 'Disabled',
    success_rate: toSuccessRate(sums),
    ...(type === 'image' ? {} : { tps: toTokensPerSecond(type, sums) }),
    art: toAverageSeconds(sums),
  };
}

export function presentSummary(totals: TotalSums): LogsSummary {
  return {
    version: apiVersion,
    period_hours: totalPeriodHours,
    total_requests: totals.requests,
    total_tokens: totals.tokens,
    success_rate: toSuccessRate(totals),
  };
}
