import type { ChatResponse } from '../../shared/contract/chat-response.ts';
import { writeStreamEventId } from '../../shared/contract/event-id.ts';

/**
 * Writes a complete chat response as the numbered events of a stream: for each choice, its message in one chunk and its
 * finish reason in another, then the usage and the end marker.
 */
export function* writeChatEvents({ id, created, model, choices, usage }: ChatResponse): Generator<string> {
  const common = { id, object: 'chat.completion.chunk', created, model };
  let number = 0;
  const write = (data: string): string => {
    number += 1;
    return `id: ${writeStreamEventId(number, id)}\ndata: ${data}\n\n`;
  };
  const writeChunk = (choice: object): string =>
    write(JSON.stringify({ ...common, choices: [choice], usage: null }));
  for (const { index, message, logprobs, finish_reason, native_finish_reason } of choices) {
    yield writeChunk({ index, delta: toDelta(message), logprobs, finish_reason: null });
    yield writeChunk({ index, delta: {}, logprobs: null, finish_reason, native_finish_reason });
  }
  yield write(JSON.stringify({ ...common, choices: [], usage }));
  yield write('[DONE]');
}

/** Clients merge the tool calls of a stream by their indexes. */
function toDelta({ tool_calls: calls, ...message }: ChatResponse['choices'][number]['message']): object {
  return calls === undefined
    ? message
    : { ...message, tool_calls: calls.map((call, index) => ({ index, ...call })) };
}
