import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';
import { readArray, readText } from '../json-value.ts';
import { type ChatBody, type ChatEvent, type ChatMessage, nameCall, type Recalled } from '../upstream.ts';

/** Longer reasoning is not saved. Vendors' limits per turn are lower. */
const MAX_CHARACTERS = 200_000;

interface SavedReasoning {
  readonly kind: 'openai';
  readonly model: string;
  readonly reasoning: string;
}

/**
 * Saves the reasoning under the first tool call. Some vendors with OpenAI's format (DeepSeek) reject a conversation
 * with tools if its calls are sent back without the `reasoning_content` that led to them, which OpenAI's clients
 * drop.
 */
export class ReasoningRecorder {
  readonly #model: string;
  readonly #reasoningOf = new Map<number, string>();
  readonly #callOf = new Map<number, string>();

  constructor(model: string) {
    this.#model = model;
  }

  /** Returns the same events, with the reasoning of a choice before its end. */
  take(events: readonly ChatEvent[]): readonly ChatEvent[] {
    let hasReasoning = false;
    for (const event of events) {
      if (event.type === 'delta') this.#takeDelta(event.index, event.delta);
      else if (event.type === 'finish') hasReasoning ||= this.#reasoningOf.has(event.index);
    }
    if (!hasReasoning) return events;
    return events.flatMap((event) =>
      event.type === 'finish' ? [...this.#conclude(event.index), event] : [event],
    );
  }

  #takeDelta(index: number, delta: JsonRecord): void {
    const thought = readText(delta['reasoning_content']);
    const earlierReasoning = thought === null ? '' : (this.#reasoningOf.get(index) ?? '');
    if (thought !== null && earlierReasoning.length <= MAX_CHARACTERS)
      this.#reasoningOf.set(index, earlierReasoning + thought);
    const calls = delta['tool_calls'];
    if (calls === undefined || this.#callOf.has(index)) return;
    const [call] = readArray(calls);
    const id = isRecord(call) ? readText(call['id']) : null;
    if (id !== null) this.#callOf.set(index, id);
  }

  #conclude(index: number): ChatEvent[] {
    const reasoning = this.#reasoningOf.get(index) ?? '';
    const toolCallId = this.#callOf.get(index);
    if (toolCallId === undefined || reasoning === '' || reasoning.length > MAX_CHARACTERS) return [];
    const value: SavedReasoning = { kind: 'openai', model: this.#model, reasoning };
    return [{ type: 'remember', index, toolCallId, value }];
  }
}

/** Adds reasoning that was saved from this model to messages that the caller sent without it. */
export function restoreReasoning(body: ChatBody, model: string, recalled: Recalled): ChatBody {
  if (recalled.size === 0) return body;
  const messages = body.messages.map((message, index) => {
    if (readText(readReasoning(message)) !== null) return message;
    const value = recalled.get(nameCall(index, findFirstCall(message) ?? ''));
    const isFromModel = isRecord(value) && value['kind'] === 'openai' && value['model'] === model;
    const reasoning = isFromModel ? readText(value['reasoning']) : null;
    return reasoning === null ? message : { ...message, reasoning_content: reasoning };
  });
  return { ...body, messages };
}

function findFirstCall({ tool_calls: calls }: ChatMessage): string | null {
  const [first] = readArray(calls);
  return isRecord(first) ? readText(first['id']) : null;
}

function readReasoning(message: ChatMessage): unknown {
  return isRecord(message) ? message['reasoning_content'] : undefined;
}
