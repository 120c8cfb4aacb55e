import { isRecord, readArray, readText } from '../json-value.ts';
import { type ChatBody, type ChatEvent, type ChatMessage, nameCall, type Recalled } from '../upstream.ts';

/** Longer thoughts are not kept: the vendor's own limits of a turn are below. */
const MAX_CHARACTERS = 200_000;

interface RememberedReasoning {
  readonly kind: 'openai';
  readonly model: string;
  readonly reasoning: string;
}

/**
 * Some vendors of this form (DeepSeek) refuse a conversation with tools whose calls come back without the
 * `reasoning_content` that led to them, which OpenAI's clients drop: it is told to be remembered with the first call.
 */
export async function* rememberReasoning(
  events: AsyncIterable<ChatEvent> | Iterable<ChatEvent>,
  model: string,
): AsyncGenerator<ChatEvent> {
  const reasoningOf = new Map<number, string>();
  const callOf = new Map<number, string>();
  for await (const event of events) {
    if (event.type === 'delta') {
      const { index, delta } = event;
      const thought = readText(delta['reasoning_content']);
      const known = reasoningOf.get(index) ?? '';
      if (thought !== null && known.length <= MAX_CHARACTERS) reasoningOf.set(index, known + thought);
      const [call] = readArray(delta['tool_calls']);
      const id = isRecord(call) ? readText(call['id']) : null;
      if (id !== null && !callOf.has(index)) callOf.set(index, id);
    } else if (event.type === 'finish') {
      const reasoning = reasoningOf.get(event.index) ?? '';
      const toolCallId = callOf.get(event.index);
      if (toolCallId !== undefined && reasoning !== '' && reasoning.length <= MAX_CHARACTERS) {
        const value: RememberedReasoning = { kind: 'openai', model, reasoning };
        yield { type: 'remember', index: event.index, toolCallId, value };
      }
    }
    yield event;
  }
}

/** The messages with what is remembered of this model's thoughts, where the caller did not send them. */
export function restoreReasoning(body: ChatBody, model: string, recalled: Recalled): ChatBody {
  if (recalled.size === 0) return body;
  const messages = body.messages.map((message, index) => {
    if (readText(readReasoning(message)) !== null) return message;
    const value = recalled.get(nameCall(index, findFirstCall(message) ?? ''));
    const isOwn = isRecord(value) && value['kind'] === 'openai' && value['model'] === model;
    const reasoning = isOwn ? readText(value['reasoning']) : null;
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
