import type { ChatResponse, ChatUsage } from '../../shared/contract/chat-response.ts';
import type { SentEvent } from './to-function-call.ts';

export interface MergedToolCall {
  /** Vendor extensions, such as Gemini's signature in `extra_content`. */
  [other: string]: unknown;
  id: string;
  type: string;
  function: { name: string; arguments: string };
}

interface Choice {
  readonly content: string[];
  readonly reasoning: string[];
  readonly refusal: string[];
  /** Vendor extensions: `annotations`, `reasoning`, `images`, the legacy `function_call`. */
  readonly others: Record<string, unknown>;
  readonly toolCalls: Map<number, MergedToolCall>;
  readonly logprobs: { content: unknown[]; refusal: unknown[] };
  finishReason: string | null;
  nativeFinishReason: string | null;
}

/** Collects the events of a chat into the response of a call that is not streamed. */
export class ChatResponseBuilder {
  readonly #choices = new Map<number, Choice>();

  add(event: SentEvent): void {
    const choice = this.#choice(event.index);
    if (event.type === 'finish') {
      choice.finishReason = event.finishReason;
      choice.nativeFinishReason = event.nativeFinishReason;
      return;
    }
    const {
      role: _role,
      content,
      reasoning_content: reasoning,
      refusal,
      tool_calls: toolCalls,
      ...others
    } = event.delta;
    mergeOthers(choice.others, others);
    if (typeof content === 'string') choice.content.push(content);
    if (typeof reasoning === 'string') choice.reasoning.push(reasoning);
    if (typeof refusal === 'string') choice.refusal.push(refusal);
    if (Array.isArray(toolCalls))
      for (const part of toolCalls) mergeToolCall(choice.toolCalls, part as ToolCallDelta);
    const logprobs = event.logprobs as
      | { content?: unknown[] | null; refusal?: unknown[] | null }
      | null
      | undefined;
    choice.logprobs.content.push(...(logprobs?.content ?? []));
    choice.logprobs.refusal.push(...(logprobs?.refusal ?? []));
  }

  finish(id: string, created: number, model: string, usage: ChatUsage): ChatResponse {
    const choices = [...this.#choices].sort(([a], [b]) => a - b);
    return {
      id,
      object: 'chat.completion',
      created,
      model,
      choices: choices.map(([index, choice]) => ({
        index,
        message: presentMessage(choice),
        logprobs: presentLogprobs(choice),
        finish_reason: choice.finishReason,
        native_finish_reason: choice.nativeFinishReason,
      })),
      usage,
    };
  }

  #choice(index: number): Choice {
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      choice = {
        content: [],
        reasoning: [],
        refusal: [],
        others: {},
        toolCalls: new Map(),
        logprobs: { content: [], refusal: [] },
        finishReason: null,
        nativeFinishReason: null,
      };
      this.#choices.set(index, choice);
    }
    return choice;
  }
}

export interface ToolCallDelta {
  readonly [other: string]: unknown;
  readonly index?: number;
  readonly id?: string;
  readonly type?: string;
  readonly function?: { readonly name?: string; readonly arguments?: string };
}

export function mergeToolCall(calls: Map<number, MergedToolCall>, part: ToolCallDelta): void {
  const index = part.index ?? calls.size;
  let call = calls.get(index);
  if (call === undefined) {
    call = { id: '', type: 'function', function: { name: '', arguments: '' } };
    calls.set(index, call);
  }
  const { index: _index, id: _id, type: _type, function: _function, ...others } = part;
  mergeOthers(call, others);
  if (part.id) call.id = part.id;
  if (part.function?.name) call.function.name = part.function.name;
  call.function.arguments += part.function?.arguments ?? '';
}

/** Merges as a client of the stream would: concatenates strings and lists, and merges objects field by field. */
function mergeOthers(into: Record<string, unknown>, from: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(from)) {
    // Prevents prototype pollution by a vendor's response.
    if (key === '__proto__') continue;
    const previous = into[key];
    if (typeof previous === 'string' && typeof value === 'string') into[key] = previous + value;
    else if (Array.isArray(previous) && Array.isArray(value)) for (const item of value) previous.push(item);
    else if (isPlainObject(previous) && isPlainObject(value)) mergeOthers(previous, value);
    // Further lists are appended to the copy.
    else if (value !== null || previous === undefined) into[key] = Array.isArray(value) ? [...value] : value;
  }
}

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function presentMessage(choice: Choice): ChatResponse['choices'][number]['message'] {
  const content = choice.content.join('');
  const calls = [...choice.toolCalls].sort(([a], [b]) => a - b).map(([, call]) => call);
  return {
    ...choice.others,
    role: 'assistant',
    content: content === '' && (calls.length > 0 || 'function_call' in choice.others) ? null : content,
    ...(choice.refusal.length > 0 ? { refusal: choice.refusal.join('') } : {}),
    ...(choice.reasoning.length > 0 ? { reasoning_content: choice.reasoning.join('') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function presentLogprobs({ logprobs }: Choice): unknown {
  if (logprobs.content.length === 0 && logprobs.refusal.length === 0) return null;
  return { content: logprobs.content, refusal: logprobs.refusal.length > 0 ? logprobs.refusal : null };
}
