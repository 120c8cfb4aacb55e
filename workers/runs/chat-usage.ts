import type { ChatUsage } from '../../shared/contract/chat-response.ts';
import type { Receipt } from '../../shared/work/settlement/finish-request.ts';
import { noUsage, type Usage } from '../../shared/catalog/cost.ts';
import { toRubNumber } from '../../shared/encoding/money.ts';
import type { MeteredChat } from './chat-meter.ts';

export function toUsage(metered: MeteredChat): Usage {
  return {
    ...noUsage,
    promptTokens: metered.promptTokens,
    completionTokens: metered.completionTokens,
    cacheReadTokens: metered.cachedTokens ?? 0,
    cacheWriteTokens: metered.cacheWriteTokens ?? 0,
    durationMs: metered.billedMs,
  };
}

export function presentUsage(metered: MeteredChat, receipt: Receipt): ChatUsage {
  const { promptTokens, completionTokens } = metered;
  return {
    prompt_tokens: promptTokens,
    prompt_tokens_details: {
      cached_tokens: metered.cachedTokens ?? 0,
      audio_tokens: null,
      web_search_tokens: metered.webSearchTokens,
      cache_write_tokens: metered.cacheWriteTokens,
    },
    completion_tokens: completionTokens,
    completion_tokens_details: {
      reasoning_tokens: metered.reasoningTokens,
      audio_tokens: null,
    },
    total_tokens: promptTokens + completionTokens,
    total_time: receipt.durationMs / 1_000,
    cost_request: toRubNumber(receipt.costNano),
    free_request: receipt.free,
  };
}
