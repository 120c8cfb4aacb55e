import type { ModelType, StatusMessage } from '../../../shared/contract/models.ts';
import type { ModelSums } from '../../../shared/ledger/request-sums.ts';

/** Minimum number of judged requests to rate a model. */
const minJudgedRequests = 5;

type Judged = Pick<ModelSums, 'succeeded' | 'failed'>;

/** Percentage of the judged requests that succeeded, 0 to 100 with two decimals; 0 if there were none. */
export function toSuccessRate({ succeeded, failed }: Judged): number {
  const judged = succeeded + failed;
  return judged === 0 ? 0 : Math.round((succeeded * 10_000) / judged) / 100;
}

/** Uses the rounded rate that is shown, so that the status never contradicts it. */
export function chooseStatusMessage(sums: Judged): Exclude<StatusMessage, 'Disabled'> {
  if (sums.succeeded + sums.failed < minJudgedRequests) return 'Not enough data';
  const rate = toSuccessRate(sums);
  if (rate > 90) return 'Good';
  if (rate > 80) return 'Normal';
  if (rate > 70) return 'Acceptable';
  return rate > 60 ? 'Bad' : 'Dead';
}

/** Tokens per second at the vendor, generated or embedded; null if unknown. */
export function toTokensPerSecond(type: Exclude<ModelType, 'image'>, sums: ModelSums): number | null {
  if (sums.vendorMs === 0) return null;
  const tokens = type === 'embedding' ? sums.promptTokens : sums.completionTokens;
  return Math.round((tokens * 100_000) / sums.vendorMs) / 100;
}

/** Average seconds from admission to settlement of a success, with three decimals; null if there was none. */
export function toAverageSeconds({ succeeded, durationMs }: ModelSums): number | null {
  return succeeded === 0 ? null : Math.round(durationMs / succeeded) / 1_000;
}
