import { isRecord } from '../../../shared/encoding/json-record.ts';
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
export async function* saveReasoning(
  events: AsyncIterable<ChatEvent> | Iterable<ChatEvent>,
  model: string,
): AsyncGenerator<ChatEvent> {
  const reasoningOf = new Map<number, string>();
  const callOf = new Map<number, string>();
  for await (const event of events) {
    if (event.type === 'delta') {
      const { index, delta } = event;
      const thought = readText(delta['reasoning_content']);
      const earlierReasoning = reasoningOf.get(index) ?? '';
      if (thought !== null && earlierReasoning.length <= MAX_CHARACTERS)
        reasoningOf.set(index, earlierReasoning + thought);
      const [call] = readArray(delta['tool_calls']);
      const id = isRecord(call) ? readText(call['id']) : null;
      if (id !== null && !callOf.has(index)) callOf.set(index, id);
    } else if (event.type === 'finish') {
      const reasoning = reasoningOf.get(event.index) ?? '';
      const toolCallId = callOf.get(event.index);
      if (toolCallId !== undefined && reasoning !== '' && reasoning.length <= MAX_CHARACTERS) {
        const value: SavedReasoning = { kind: 'openai', model, reasoning };
        yield { type: 'remember', index: event.index, toolCallId, value };
      }
    }
    yield event;
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
