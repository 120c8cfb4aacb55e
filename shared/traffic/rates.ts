import type { ModelType, StatusMessage } from '../contract/models.ts';
import type { ModelSums } from './traffic-sums.ts';

/** Fewer judged requests than these say nothing about a model. */
export const leastJudged = 5;

type Judged = Pick<ModelSums, 'succeeded' | 'failed'>;

/** Percent of the judged requests that succeeded, 0..100 with two decimals; 0 where none was judged. */
export function toSuccessRate({ succeeded, failed }: Judged): number {
  const judged = succeeded + failed;
  return judged === 0 ? 0 : Math.round((succeeded * 10_000) / judged) / 100;
}

/** By the rate as it is shown, so that a status never contradicts itself. */
export function chooseStatusMessage(sums: Judged): Exclude<StatusMessage, 'Disabled'> {
  if (sums.succeeded + sums.failed < leastJudged) return 'Not enough data';
  const rate = toSuccessRate(sums);
  if (rate > 90) return 'Good';
  if (rate > 80) return 'Normal';
  if (rate > 70) return 'Acceptable';
  return rate > 60 ? 'Bad' : 'Dead';
}

/** Tokens a second at the vendor: those that were generated, or those that were embedded. Null where nobody knows. */
export function toTokensPerSecond(type: Exclude<ModelType, 'image'>, sums: ModelSums): number | null {
  if (sums.vendorMs === 0) return null;
  const tokens = type === 'embedding' ? sums.promptTokens : sums.completionTokens;
  return Math.round((tokens * 100_000) / sums.vendorMs) / 100;
}

/** Seconds from admission to settlement of an average success, with three decimals. Null where there was none. */
export function toAverageSeconds({ succeeded, durationMs }: ModelSums): number | null {
  return succeeded === 0 ? null : Math.round(durationMs / succeeded) / 1_000;
}
