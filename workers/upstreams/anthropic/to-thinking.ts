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
 * - `adaptive`: as much as it sees fit, guided by `effort`; `isShown` says whether we want to read it
 * - `off`: not at all; `type` is how to say so, null if that is the default
 */
export type ThinkingPlan =
  | { readonly kind: 'budget'; readonly budgetTokens: number }
  | { readonly kind: 'adaptive'; readonly effort: string | null; readonly isShown: boolean }
  | { readonly kind: 'off'; readonly type: 'disabled' | 'between_tools' | null };

const off: ThinkingPlan = { kind: 'off', type: null };

const MIN_BUDGET = 1024;
/** The part of the token limit left for the response: a quarter, but no more than this. */
const MAX_ANSWER_ROOM = 4096;

const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 12_288,
  high: 32_768,
  xhigh: 49_152,
  max: 65_536,
};

/** Maps OpenAI's levels to Anthropic's efforts. A level that neither knows leaves the effort to the model. */
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
    // The API does not allow both, and the forced tool call was requested explicitly.
    const budgetTokens = level === null || isToolForced(body) ? null : toBudget(level, maxTokens);
    return budgetTokens === null ? off : { kind: 'budget', budgetTokens };
  }
  if (level === null && !traits.thinksUnasked) return off;
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
  const room = maxTokens - Math.min(MAX_ANSWER_ROOM, Math.ceil(maxTokens / 4));
  const budget = Math.min(lookUp(BUDGETS, level) ?? BUDGETS['medium']!, room);
  return budget < MIN_BUDGET ? null : budget;
}

/** What is saved with the tool calls of a response: the signed thinking that led to the calls, in its order. */
export interface SavedThinking {
  readonly kind: 'anthropic';
  readonly model: string;
  /** Empty if the model called without thinking, which a thinking request must know as well. */
  readonly blocks: readonly Block[];
}

/** Whether this is a complete signed thinking block. The API would reject an unsigned one. */
export function isThinkingBlock(value: unknown): value is Block {
  if (!isRecord(value)) return false;
  return value['type'] === 'thinking'
    ? typeof value['thinking'] === 'string' && readText(value['signature']) !== null
    : value['type'] === 'redacted_thinking' && readText(value['data']) !== null;
}

/** Returns the thinking before the calls of one message, if it is saved and from this model; otherwise null. */
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
 * Whether the conversation allows thinking by budget. The API counts an open round of tool calls as one turn:
 * it must begin with its thinking, and none of its steps may lack any. Finished rounds may lack theirs.
 * Thinking by effort has no such requirement.
 */
export function isOpenRoundKnown(
  messages: readonly ChatMessage[],
  recall: (messageIndex: number) => readonly Block[] | null,
): boolean {
  const round = findOpenRound(messages).map(recall);
  return round.length === 0 || (round.every((blocks) => blocks !== null) && (round[0]?.length ?? 0) > 0);
}

/**
 * Returns the message indices of the open round's steps, oldest first; none if the conversation does not wait
 * for the model after a tool call.
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
