import type { ChatUsage } from '../../shared/contract/chat-response.ts';
import type { Receipt } from '../../shared/billing/finish-request.ts';
import { noUsage, type Usage } from '../../shared/pricing/cost.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';
import type { UpstreamUsage } from '../upstreams/upstream.ts';

/** What a chat used so far: as the vendor reported it, and by our own count where it did not. */
export interface ChatMeter {
  readonly reported: UpstreamUsage | null;
  readonly countedPrompt: number;
  readonly countedCompletion: number;
  readonly billedMs: number;
}

/** Whether some of the tokens are our own count. */
export function isCounted({ reported }: ChatMeter): boolean {
  return reported === null || reported.promptTokens === null || reported.completionTokens === null;
}

export function toUsage(meter: ChatMeter): Usage {
  const { reported } = meter;
  return {
    ...noUsage,
    promptTokens: reported?.promptTokens ?? meter.countedPrompt,
    completionTokens: reported?.completionTokens ?? meter.countedCompletion,
    cacheReadTokens: reported?.cachedTokens ?? 0,
    cacheWriteTokens: reported?.cacheWriteTokens ?? 0,
    durationMs: meter.billedMs,
  };
}

export function presentUsage(meter: ChatMeter, receipt: Receipt): ChatUsage {
  const usage = toUsage(meter);
  return {
    prompt_tokens: usage.promptTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      audio_tokens: null,
      web_search_tokens: meter.reported?.webSearchTokens ?? null,
      cache_write_tokens: meter.reported?.cacheWriteTokens ?? null,
    },
    completion_tokens: usage.completionTokens,
    completion_tokens_details: {
      reasoning_tokens: meter.reported?.reasoningTokens ?? null,
      audio_tokens: null,
    },
    total_tokens: usage.promptTokens + usage.completionTokens,
    total_time: receipt.durationMs / 1_000,
    cost_request: toRubNumber(receipt.costNano),
    free_request: receipt.free,
  };
}
