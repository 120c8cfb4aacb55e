import { formatRub } from '../../encoding/money.ts';
import type { RequestFacts } from './request-facts.ts';

/** Adds to a log line what was done for a request. What is zero is left out. */
export function describeFacts(facts: RequestFacts, line: Record<string, unknown>): void {
  const { upstream, queueWaitMs } = facts;
  if (upstream !== null) {
    line['upstream'] = upstream;
    line['attempts'] = facts.attempts;
    line['upstreamMs'] = facts.upstreamMs;
  }
  if (queueWaitMs !== null) line['queueWaitMs'] = queueWaitMs;
  if (facts.promptTokens > 0) line['promptTokens'] = facts.promptTokens;
  if (facts.cachedTokens > 0) line['cachedTokens'] = facts.cachedTokens;
  if (facts.completionTokens > 0) line['completionTokens'] = facts.completionTokens;
  if (facts.reasoningTokens > 0) line['reasoningTokens'] = facts.reasoningTokens;
  // In roubles.
  line['cost'] = Number(formatRub(facts.costNano));
  if (facts.isFree) line['isFree'] = true;
  if (facts.reason !== null) line['reason'] = facts.reason;
}
