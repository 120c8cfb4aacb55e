import type { ChatStreamTranslator } from '../../workers/upstreams/chat-stream.ts';
import { type ChatEvent, UpstreamError } from '../../workers/upstreams/upstream.ts';

/** The events of a stream, then the error if there was one. */
export type ChatOutcome = (ChatEvent | UpstreamError)[];

/** Translates a stream that arrives in these pieces. */
export function translatePieces(
  translator: ChatStreamTranslator,
  pieces: readonly Uint8Array[],
): ChatOutcome {
  const events: ChatEvent[] = [];
  try {
    for (const piece of pieces) translator.push(piece, events);
    return [...events, ...translator.end()];
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    return [...events, error];
  }
}

/** Yields the events of a chat call one by one. */
export async function* flattenEvents(
  batches: AsyncIterable<readonly ChatEvent[]>,
): AsyncGenerator<ChatEvent> {
  for await (const events of batches) yield* events;
}
