import type { HttpResponse } from './http-client.ts';
import { type CallContext, type ChatEvent, UpstreamError } from './upstream.ts';

/** The state machine of a dialect's chat stream: bytes in, events out. Pure; throws UpstreamError. */
export interface ChatStreamTranslator {
  /** Takes the next bytes of the body, which may be split anywhere. Yields all complete events before it throws. */
  push(bytes: Uint8Array): Iterable<ChatEvent>;
  /**
   * Called when the body has ended or was cut off. Returns the remaining events, or throws if the stream is incomplete.
   */
  end(): ChatEvent[];
  /** Whether the dialect's end marker has arrived; anything after it is ignored. */
  readonly isDone: boolean;
  /** Whether the response is complete, so that nothing is lost if the connection breaks. */
  readonly isFinished: boolean;
}

/** Reads a streamed response to its end, or until the consumer stops. */
export async function* readChatStream(
  response: HttpResponse,
  translator: ChatStreamTranslator,
  context: CallContext,
): AsyncGenerator<ChatEvent> {
  let isComplete = false;
  try {
    yield* translate(response, translator, context);
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

async function* translate(
  response: HttpResponse,
  translator: ChatStreamTranslator,
  context: CallContext,
): AsyncGenerator<ChatEvent> {
  while (!translator.isDone) {
    const chunk = await readNext(response, translator.isFinished, context);
    if (chunk === null) {
      yield* translator.end();
      return;
    }
    yield* translator.push(chunk);
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
