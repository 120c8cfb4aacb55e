import { isRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import type { ChatBody, Recalled, UpstreamTarget } from '../upstream.ts';
import { type ClaudeTraits, readClaudeTraits } from './claude-traits.ts';
import { type Block, type MediaMap } from './to-content.ts';
import { toConversation, type Turn } from './to-messages.ts';
import { findThinking, isOpenRoundKnown, planThinking, type ThinkingPlan } from './to-thinking.ts';
import { toToolFields } from './to-tools.ts';

/** What a request needs besides its body. */
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

/** A request is not possible without these. */
const KEPT_FIELDS = new Set(['messages', 'max_tokens', 'max_completion_tokens']);

/**
 * Converts an OpenAI chat request to the Messages API (Anthropic's API reference, 2023-06-01). Pure.
 *
 * Leaves out fields that the API does not support: `frequency_penalty`, `presence_penalty`,
 * `repetition_penalty`, `min_p`, `top_a`, `seed`, `logit_bias`, `verbosity`, `prediction`, `store`,
 * `service_tier`, `metadata`.
 */
export function toChatRequest(
  target: UpstreamTarget,
  body: ChatBody,
  stream: boolean,
  { media, recalled }: RequestContext,
): MessagesRequest {
  const asked = leaveOut(body, target.drops);
  const traits = readClaudeTraits(target.model, target.thinking);
  const maxTokens = readMaxTokens(asked);
  const findBlocks = (messageIndex: number): readonly Block[] | null =>
    findThinking(recalled, asked.messages, messageIndex, target.model);
  const wanted = planThinking(target, asked, maxTokens);
  const plan: ThinkingPlan =
    wanted.kind === 'budget' && !isOpenRoundKnown(asked.messages, findBlocks)
      ? { kind: 'off', type: null }
      : wanted;
  const thinks = plan.kind !== 'off';

  let hasRecalled = false;
  const conversation = toConversation(asked.messages, {
    media,
    takesPrefill: traits.takesPrefill && !thinks,
    recallThinking: (messageIndex) => {
      const blocks = (thinks ? findBlocks(messageIndex) : null) ?? [];
      hasRecalled ||= blocks.length > 0;
      return blocks;
    },
  });
  const drops = hasRecalled && traits.bindsThinking && plan.kind === 'adaptive';
  const { system, turns } = conversation;
  const user = readText(asked['user']);
  return {
    body: {
      model: target.model,
      max_tokens: maxTokens,
      ...(system.length > 0 && { system }),
      messages: turns,
      ...toToolFields(asked, conversation.calledNames),
      ...toSamplingFields(asked, traits, thinks),
      ...toStopField(asked['stop']),
      ...toThinkingFields(plan, drops),
      ...toOutputConfig(plan, asked['response_format']),
      ...(user !== null && { metadata: { user_id: user } }),
      ...(stream && { stream: true }),
    },
    betas: drops ? [BINDING_BETA] : [],
    thinks,
  };
}

/**
 * Builds the request that continues from the output so far. Blocks are sent back unchanged, except blank texts,
 * which the API sends but does not accept. Returns null if the remaining token limit is too small to continue:
 * all calls together stay within the limit that money was reserved for.
 */
export function continueRequest(
  request: MessagesRequest,
  said: readonly Block[],
  maxTokens: number,
): MessagesRequest | null {
  const thinking = request.body['thinking'];
  const budget = isRecord(thinking) ? Number(thinking['budget_tokens'] ?? 0) : 0;
  if (maxTokens <= budget) return null;
  const blocks = said.filter((block) => block['type'] !== 'text' || String(block['text']).trim() !== '');
  const last = request.body.messages.at(-1);
  const messages =
    last?.role === 'assistant'
      ? [...request.body.messages.slice(0, -1), { ...last, content: [...last.content, ...blocks] }]
      : [...request.body.messages, { role: 'assistant' as const, content: blocks }];
  return { ...request, body: { ...request.body, max_tokens: maxTokens, messages } };
}

function leaveOut(body: ChatBody, drops: ReadonlySet<string>): ChatBody {
  const kept = Object.entries(body).filter(([field]) => KEPT_FIELDS.has(field) || !drops.has(field));
  return { ...Object.fromEntries(kept), messages: body.messages };
}

/** Exactly one of the two is above zero; the API requires it. */
function readMaxTokens(body: ChatBody): number {
  const [older, newer] = [body['max_tokens'], body['max_completion_tokens']];
  return typeof newer === 'number' && newer > 0 ? newer : Number(older);
}

/**
 * The maximum `temperature` is 1 here. If there are both `top_p` and `temperature`, most models accept only
 * one: `top_p` is sent then, because every request of ours has a temperature, which may be just the default. A
 * model that thinks only accepts a `top_p` near 1.
 */
function toSamplingFields(body: ChatBody, traits: ClaudeTraits, thinks: boolean): Record<string, number> {
  if (traits.sampling === 'none') return {};
  const { temperature, top_p: topP, top_k: topK } = body;
  if (thinks) return typeof topP === 'number' && topP >= 0.95 ? { top_p: topP } : {};
  const narrows = typeof topP === 'number' && topP < 1;
  const leavesTemperature = narrows && traits.sampling === 'one';
  return {
    ...(typeof temperature === 'number' && !leavesTemperature && { temperature: Math.min(temperature, 1) }),
    ...(narrows && { top_p: topP }),
    // Zero means "no limit" to our callers.
    ...(typeof topK === 'number' && topK > 0 && { top_k: topK }),
  };
}

/** The API rejects blank texts. */
function toStopField(stop: unknown): { stop_sequences?: string[] } {
  const texts = (typeof stop === 'string' ? [stop] : readArray(stop)).filter(
    (text): text is string => typeof text === 'string' && text.trim() !== '',
  );
  return texts.length > 0 ? { stop_sequences: texts } : {};
}

function toThinkingFields(plan: ThinkingPlan, drops: boolean): { thinking?: object } {
  switch (plan.kind) {
    case 'budget':
      return { thinking: { type: 'enabled', budget_tokens: plan.budgetTokens } };
    case 'adaptive':
      return {
        thinking: {
          type: 'adaptive',
          // From Opus 4.7 on, thinking stays hidden unless it is requested.
          display: plan.isShown ? 'summarized' : 'omitted',
          ...(drops && { block_binding: { prefix_mismatch_behavior: 'drop_block' } }),
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
  const told = isRecord(format) && isRecord(format['json_schema']) ? format['json_schema'] : {};
  const schema = isRecord(format) && format['type'] === 'json_schema' ? told['schema'] : null;
  const config = {
    ...(effort !== null && { effort }),
    ...(isRecord(schema) && { format: { type: 'json_schema', schema } }),
  };
  return Object.keys(config).length > 0 ? { output_config: config } : {};
}
