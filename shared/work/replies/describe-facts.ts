import { formatRub } from '../../encoding/money.ts';
import type { RequestFacts } from './request-facts.ts';

/** Describes what was done for a request, for a log line. What is zero is left out. */
export function describeFacts(facts: RequestFacts): Readonly<Record<string, string | number | boolean>> {
  const { upstream, attempts, queueWaitMs, upstreamMs, costNano, isFree } = facts;
  const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = facts;
  return {
    ...(upstream !== null && { upstream, attempts, upstreamMs }),
    ...(queueWaitMs !== null && { queueWaitMs }),
    ...(promptTokens > 0 && { promptTokens }),
    ...(cachedTokens > 0 && { cachedTokens }),
    ...(completionTokens > 0 && { completionTokens }),
    ...(reasoningTokens > 0 && { reasoningTokens }),
    // In roubles.
    cost: Number(formatRub(costNano)),
    ...(isFree && { isFree }),
  };
}
