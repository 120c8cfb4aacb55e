import { isRecord } from '../../../shared/encoding/json-record.ts';
import { lookUp, readArray, readText } from '../json-value.ts';
import {
  type ChatBody,
  type ChatMessage,
  nameCall,
  type Recalled,
  type UpstreamTarget,
} from '../upstream.ts';
import { readClaudeTraits } from './claude-traits.ts';
import type { Block } from './to-content.ts';
import { isToolForced } from './to-tools.ts';

/**
 * How a request makes the model think.
 * - `budget`: up to this many tokens
 * - `adaptive`: as much as it chooses, guided by `effort`; `isShown` is whether the thinking is included in the
 *   response
 * - `off`: not at all; `type` is the value that turns it off, or null if it is off by default
 */
export type ThinkingPlan =
  | { readonly kind: 'budget'; readonly budgetTokens: number }
  | { readonly kind: 'adaptive'; readonly effort: string | null; readonly isShown: boolean }
  | { readonly kind: 'off'; readonly type: 'disabled' | 'between_tools' | null };

const off: ThinkingPlan = { kind: 'off', type: null };

const MIN_BUDGET = 1024;
/** A quarter of the token limit is reserved for the response, but at most this. */
const MAX_RESPONSE_RESERVE = 4096;

const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 12_288,
  high: 32_768,
  xhigh: 49_152,
  max: 65_536,
};

/** Maps OpenAI's levels to Anthropic's efforts. For any other level, the model chooses the effort. */
const EFFORTS: Readonly<Record<string, string>> = {
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'max',
};

export function planThinking(target: UpstreamTarget, body: ChatBody, maxTokens: number): ThinkingPlan {
  const traits = readClaudeTraits(target.model, target.thinking);
  const level = readText(body['reasoning_effort']);
  const style = target.thinking ?? traits.thinking;
  if (style === null) return off;
  if (style === 'budget') {
    // The API does not allow both. The forced tool call takes precedence, because it was requested explicitly.
    const budgetTokens = level === null || isToolForced(body) ? null : toBudget(level, maxTokens);
    return budgetTokens === null ? off : { kind: 'budget', budgetTokens };
  }
  if (level === null && !traits.thinksByDefault) return off;
  if (level === 'none') {
    return traits.thinkingOff === 'never'
      ? { kind: 'adaptive', effort: 'low', isShown: false }
      : { kind: 'off', type: traits.thinkingOff === 'unasked' ? null : traits.thinkingOff };
  }
  const effort = lookUp(EFFORTS, level) ?? null;
  return {
    kind: 'adaptive',
    effort: effort === 'xhigh' && !traits.hasXhigh ? 'high' : effort,
    isShown: true,
  };
}

function toBudget(level: string, maxTokens: number): number | null {
  if (level === 'none') return null;
  const available = maxTokens - Math.min(MAX_RESPONSE_RESERVE, Math.ceil(maxTokens / 4));
  const budget = Math.min(lookUp(BUDGETS, level) ?? BUDGETS['medium']!, available);
  return budget < MIN_BUDGET ? null : budget;
}

/** Saved with the tool calls of a response: the signed thinking that led to the calls, in order. */
export interface SavedThinking {
  readonly kind: 'anthropic';
  readonly model: string;
  /** Empty if the model called the tools without thinking, which a later request with thinking must know as well. */
  readonly blocks: readonly Block[];
}

/** Whether this is a complete, signed thinking block. The API rejects unsigned ones. */
export function isThinkingBlock(value: unknown): value is Block {
  if (!isRecord(value)) return false;
  return value['type'] === 'thinking'
    ? typeof value['thinking'] === 'string' && readText(value['signature']) !== null
    : value['type'] === 'redacted_thinking' && readText(value['data']) !== null;
}

/** Returns the thinking before the tool calls of a message if it was saved and is from this model; otherwise null. */
export function findThinking(
  recalled: Recalled,
  messages: readonly ChatMessage[],
  messageIndex: number,
  model: string,
): readonly Block[] | null {
  for (const id of readCallIds(messages[messageIndex])) {
    const value = recalled.get(nameCall(messageIndex, id));
    if (isRecord(value) && value['kind'] === 'anthropic' && value['model'] === model) {
      const blocks = readArray(value['blocks']);
      if (blocks.every(isThinkingBlock)) return blocks;
    }
  }
  return null;
}

/**
 * Whether the conversation allows thinking by budget. The API treats an open round of tool calls as one turn: it must
 * begin with thinking, and the thinking of all its steps must be known. Finished rounds may lack their thinking.
 * Thinking by effort has no such requirement.
 */
export function isOpenRoundKnown(
  messages: readonly ChatMessage[],
  findBlocks: (messageIndex: number) => readonly Block[] | null,
): boolean {
  const round = findOpenRound(messages).map(findBlocks);
  return round.length === 0 || (round.every((blocks) => blocks !== null) && (round[0]?.length ?? 0) > 0);
}

/**
 * Returns the message indices of the open round's steps, oldest first; empty if the conversation does not end with a
 * tool call or its results.
 */
function findOpenRound(messages: readonly ChatMessage[]): number[] {
  const steps: number[] = [];
  for (let index = messages.findLastIndex(({ role }) => role === 'assistant'); index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role === 'assistant' && readCallIds(message).length > 0) steps.push(index);
    else if (message?.role !== 'tool') break;
  }
  return steps.toReversed();
}

/** Returns the IDs of the tool calls in this message. */
function readCallIds(message: ChatMessage | undefined): string[] {
  return readArray(message?.tool_calls).flatMap((call) =>
    isRecord(call) ? (readText(call['id']) ?? []) : [],
  );
}
