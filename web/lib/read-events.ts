import { EventSourceParserStream } from 'eventsource-parser/stream';

export interface StreamEvent {
  readonly id?: string | undefined;
  readonly event?: string | undefined;
  readonly data: string;
}

/**
 * Reads the events of a response as they come.
 * @param onComment called with the text of each comment, such as `queued position=3`
 * @throws what the connection throws when it breaks off or is aborted
 */
export async function* readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  onComment?: (text: string) => void,
): AsyncGenerator<StreamEvent> {
  const events = body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream({ onComment }));
  // Not every browser can iterate over a stream.
  const reader = events.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
