import type { HttpResponse } from './http-client.ts';
import { type CallContext, type ChatEvent, UpstreamError } from './upstream.ts';

/** The state machine of a dialect's chat stream: bytes in, events out. Pure; throws UpstreamError. */
export interface ChatStreamTranslator {
  /**
   * Takes the next bytes of the body, which may be split anywhere, and appends the events that they complete. Also
   * appends all complete events before it throws.
   */
  push(bytes: Uint8Array, events: ChatEvent[]): void;
  /**
   * Called when the body has ended or was cut off. Returns the remaining events, or throws if the stream is incomplete.
   */
  end(): ChatEvent[];
  /** Whether the dialect's end marker has arrived; anything after it is ignored. */
  readonly isDone: boolean;
  /** Whether the response is complete, so that nothing is lost if the connection breaks. */
  readonly isFinished: boolean;
}

/** Reads a streamed response to its end, or until the consumer stops. Yields the events of each read together. */
export async function* readChatStream(
  response: HttpResponse,
  translator: ChatStreamTranslator,
  context: CallContext,
): AsyncGenerator<readonly ChatEvent[]> {
  let isComplete = false;
  try {
    while (!translator.isDone) {
      const chunk = await readNext(response, translator.isFinished, context);
      if (chunk === null) {
        yield translator.end();
        break;
      }
      const { events, failure } = translate(translator, chunk);
      if (events.length > 0) {
        yield events;
      }
      if (failure !== null) {
        throw failure.error;
      }
    }
    isComplete = true;
  } finally {
    // If the consumer stops early, abort the call immediately. After the end, the connection can be reused.
    if (isComplete) {
      response.release();
    } else {
      response.abort();
    }
  }
}

/** Returns the events before a failure as well, because they are output. */
function translate(
  translator: ChatStreamTranslator,
  chunk: Buffer,
): { readonly events: readonly ChatEvent[]; readonly failure: { readonly error: unknown } | null } {
  const events: ChatEvent[] = [];
  try {
    translator.push(chunk, events);
    return { events, failure: null };
  } catch (error) {
    return { events, failure: { error } };
  }
}

async function readNext(
  response: HttpResponse,
  isFinished: boolean,
  context: CallContext,
): Promise<Buffer | null> {
  try {
    return await response.next();
  } catch (error) {
    if (isFinished && error instanceof UpstreamError) {
      context.log.debug({ err: error }, 'connection broke after the end of the stream');
      return null;
    }
    throw error;
  }
}
