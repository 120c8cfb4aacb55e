import type { ResponseBlock } from './anthropic-blocks.ts';
import type { ScriptedUsage } from '../chat-script.ts';
import type { Faults } from '../faults.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';

/** The content of a response, before it is rendered as one message or many events. */
export interface AnthropicPlan {
  readonly model: string;
  readonly blocks: readonly ResponseBlock[];
  readonly stop: string;
  readonly usage: ScriptedUsage;
}

export function renderWhole(plan: AnthropicPlan, faults: Faults): object {
  return {
    ...renderHead(plan),
    content: plan.blocks.map((block) => block.whole),
    stop_reason: plan.stop,
    stop_sequence: null,
    ...(faults.usage === 'missing' ? {} : { usage: renderWholeUsage(plan.usage) }),
  };
}

export function renderHead({ model }: AnthropicPlan): JsonRecord {
  return { id: 'msg_simulated', type: 'message', role: 'assistant', model };
}

/** `input_tokens` excludes cache reads and writes, and includes search results. */
export function renderUsage(usage: ScriptedUsage): JsonRecord {
  return {
    ...renderPromptUsage(usage, usage.searchTokens),
    output_tokens: usage.completionTokens,
    output_tokens_details: { thinking_tokens: usage.reasoningTokens },
    server_tool_use: usage.searchTokens > 0 ? { web_search_requests: 1, web_fetch_requests: 0 } : null,
  };
}

export function renderPromptUsage(usage: ScriptedUsage, searchTokens: number): JsonRecord {
  return {
    input_tokens: usage.promptTokens - usage.cachedTokens - usage.cacheWriteTokens + searchTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cachedTokens,
  };
}

function renderWholeUsage(usage: ScriptedUsage): JsonRecord {
  return {
    ...renderUsage(usage),
    cache_creation: { ephemeral_5m_input_tokens: usage.cacheWriteTokens, ephemeral_1h_input_tokens: 0 },
    service_tier: 'standard',
  };
}
