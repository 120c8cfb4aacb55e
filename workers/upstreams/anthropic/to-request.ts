import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import type { ChatBody, Recalled, UpstreamTarget } from '../upstream.ts';
import { type ClaudeTraits, readClaudeTraits } from './claude-traits.ts';
import { type Block, type MediaMap } from './to-content.ts';
import { toConversation, type Turn } from './to-messages.ts';
import { findThinking, isOpenRoundKnown, planThinking, type ThinkingPlan } from './to-thinking.ts';
import { toToolFields } from './to-tools.ts';

/** The inputs of the conversion besides the body. */
export interface RequestContext {
  readonly media: MediaMap;
  readonly recalled: Recalled;
}

export interface MessagesRequest {
  readonly body: Readonly<Record<string, unknown>> & {
    readonly messages: readonly Turn[];
    readonly max_tokens: number;
  };
  /** Values of the header `anthropic-beta`. */
  readonly betas: readonly string[];
  /** Whether the model thinks, so that the thinking before its tool calls should be saved. */
  readonly thinks: boolean;
}

/**
 * Lets the API drop a saved block that no longer fits. Clients shorten and edit their conversations, and newer
 * Claude models reject a request whose thinking was made after different text.
 */
const BINDING_BETA = 'thinking-binding-controls-2026-08-01';

/** Fields that a route cannot drop, because every request needs them. */
const REQUIRED_FIELDS = new Set(['messages', 'max_tokens', 'max_completion_tokens']);

/**
 * Converts an OpenAI chat request to the Messages API (Anthropic's API reference, 2023-06-01). Pure.
 *
 * Omits fields that the API does not support: `frequency_penalty`, `presence_penalty`,
 * `repetition_penalty`, `min_p`, `top_a`, `seed`, `logit_bias`, `verbosity`, `prediction`, `store`,
 * `service_tier`, `metadata`.
 */
export function toChatRequest(
  target: UpstreamTarget,
  body: ChatBody,
  stream: boolean,
  { media, recalled }: RequestContext,
): MessagesRequest {
  const request = dropFields(body, target.drops);
  const traits = readClaudeTraits(target.model, target.thinking);
  const maxTokens = readMaxTokens(request);
  const findBlocks = (messageIndex: number): readonly Block[] | null =>
    findThinking(recalled, request.messages, messageIndex, target.model);
  const requestedPlan = planThinking(target, request, maxTokens);
  const plan: ThinkingPlan =
    requestedPlan.kind === 'budget' && !isOpenRoundKnown(request.messages, findBlocks)
      ? { kind: 'off', type: null }
      : requestedPlan;
  const thinks = plan.kind !== 'off';

  let hasSavedThinking = false;
  const conversation = toConversation(request.messages, {
    media,
    supportsPrefill: traits.supportsPrefill && !thinks,
    findSavedThinking: (messageIndex) => {
      const blocks = (thinks ? findBlocks(messageIndex) : null) ?? [];
      hasSavedThinking ||= blocks.length > 0;
      return blocks;
    },
  });
  const mayDropBlocks = hasSavedThinking && traits.bindsThinking && plan.kind === 'adaptive';
  const { system, turns } = conversation;
  const user = readText(request['user']);
  return {
    body: {
      model: target.model,
      max_tokens: maxTokens,
      ...(system.length > 0 && { system }),
      messages: turns,
      ...toToolFields(request, conversation.calledNames),
      ...toSamplingFields(request, traits, thinks),
      ...toStopField(request['stop']),
      ...toThinkingFields(plan, mayDropBlocks),
      ...toOutputConfig(plan, request['response_format']),
      ...(user !== null && { metadata: { user_id: user } }),
      ...(stream && { stream: true }),
    },
    betas: mayDropBlocks ? [BINDING_BETA] : [],
    thinks,
  };
}

/**
 * Builds the request that continues from the output so far. Blocks are sent back unchanged, except that blank texts are
 * omitted, which the API sends but does not accept. Returns null if the remaining token limit is too small to continue:
 * all calls together stay within the limit for which money was reserved.
 */
export function continueRequest(
  request: MessagesRequest,
  output: readonly Block[],
  maxTokens: number,
): MessagesRequest | null {
  const thinking = request.body['thinking'];
  const budget = isRecord(thinking) ? Number(thinking['budget_tokens'] ?? 0) : 0;
  if (maxTokens <= budget) return null;
  const blocks = output.filter((block) => block['type'] !== 'text' || String(block['text']).trim() !== '');
  const last = request.body.messages.at(-1);
  const messages =
    last?.role === 'assistant'
      ? [...request.body.messages.slice(0, -1), { ...last, content: [...last.content, ...blocks] }]
      : [...request.body.messages, { role: 'assistant' as const, content: blocks }];
  return { ...request, body: { ...request.body, max_tokens: maxTokens, messages } };
}

function dropFields(body: ChatBody, drops: ReadonlySet<string>): ChatBody {
  const remainingFields = Object.entries(body).filter(
    ([field]) => REQUIRED_FIELDS.has(field) || !drops.has(field),
  );
  return { ...Object.fromEntries(remainingFields), messages: body.messages };
}

/** The API requires a token limit. Exactly one of `max_tokens` and `max_completion_tokens` is above zero. */
function readMaxTokens(body: ChatBody): number {
  const [older, newer] = [body['max_tokens'], body['max_completion_tokens']];
  return typeof newer === 'number' && newer > 0 ? newer : Number(older);
}

/**
 * The maximum `temperature` is 1 here. Most models accept only one of `top_p` and `temperature`. If both are set,
 * `top_p` is sent, because every request of ours has a temperature, which may be just the default. While thinking,
 * models only accept a `top_p` near 1.
 */
function toSamplingFields(body: ChatBody, traits: ClaudeTraits, thinks: boolean): Record<string, number> {
  if (traits.sampling === 'none') return {};
  const { temperature, top_p: topP, top_k: topK } = body;
  if (thinks) return typeof topP === 'number' && topP >= 0.95 ? { top_p: topP } : {};
  const limitsTopP = typeof topP === 'number' && topP < 1;
  const omitsTemperature = limitsTopP && traits.sampling === 'one';
  return {
    ...(typeof temperature === 'number' && !omitsTemperature && { temperature: Math.min(temperature, 1) }),
    ...(limitsTopP && { top_p: topP }),
    // Zero means "no limit" to our callers.
    ...(typeof topK === 'number' && topK > 0 && { top_k: topK }),
  };
}

/** Omits blank texts, which the API rejects. */
function toStopField(stop: unknown): { stop_sequences?: string[] } {
  const texts = (typeof stop === 'string' ? [stop] : readArray(stop)).filter(
    (text): text is string => typeof text === 'string' && text.trim() !== '',
  );
  return texts.length > 0 ? { stop_sequences: texts } : {};
}

function toThinkingFields(plan: ThinkingPlan, mayDropBlocks: boolean): { thinking?: object } {
  switch (plan.kind) {
    case 'budget':
      return { thinking: { type: 'enabled', budget_tokens: plan.budgetTokens } };
    case 'adaptive':
      return {
        thinking: {
          type: 'adaptive',
          // As of Opus 4.7, thinking is hidden unless its display is requested.
          display: plan.isShown ? 'summarized' : 'omitted',
          ...(mayDropBlocks && { block_binding: { prefix_mismatch_behavior: 'drop_block' } }),
        },
      };
    case 'off':
      return plan.type === null ? {} : { thinking: { type: plan.type } };
    default:
      return plan satisfies never;
  }
}

function toOutputConfig(plan: ThinkingPlan, format: unknown): { output_config?: object } {
  const effort = plan.kind === 'adaptive' ? plan.effort : null;
  const jsonSchema = isRecord(format) && isRecord(format['json_schema']) ? format['json_schema'] : {};
  const schema = isRecord(format) && format['type'] === 'json_schema' ? jsonSchema['schema'] : null;
  const config = {
    ...(effort !== null && { effort }),
    ...(isRecord(schema) && { format: { type: 'json_schema', schema } }),
  };
  return Object.keys(config).length > 0 ? { output_config: config } : {};
}
