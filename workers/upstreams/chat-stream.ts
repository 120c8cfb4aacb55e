import type { HttpResponse } from './http-client.ts';
import { type CallContext, type ChatEvent, UpstreamError } from './upstream.ts';

/** The state machine of a dialect's chat stream: bytes in, events out. Pure; throws UpstreamError. */
export interface ChatStreamTranslator {
  /** Takes the next bytes of the body, split anywhere. Yields all complete events before it throws. */
  push(bytes: Uint8Array): Iterable<ChatEvent>;
  /**
   * Called when the body ended or was cut off. Returns the remaining events, or throws if the stream was
   * incomplete.
   */
  end(): ChatEvent[];
  /** The dialect's end mark has arrived; anything after it is ignored. */
  readonly isDone: boolean;
  /** The response is complete: a connection that breaks from here on loses nothing. */
  readonly isFinished: boolean;
}

/** Reads a streamed response to its end, or until the consumer stops. */
export async function* readChatStream(
  answer: HttpResponse,
  translator: ChatStreamTranslator,
  context: CallContext,
): AsyncGenerator<ChatEvent> {
  let isOver = false;
  try {
    yield* translate(answer, translator, context);
    isOver = true;
  } finally {
    // A consumer that stops early aborts the vendor at once. After the end, the connection is worth keeping.
    if (isOver) {
      answer.release();
    } else {
      answer.abort();
    }
  }
}

async function* translate(
  answer: HttpResponse,
  translator: ChatStreamTranslator,
  context: CallContext,
): AsyncGenerator<ChatEvent> {
  while (!translator.isDone) {
    const chunk = await readNext(answer, translator.isFinished, context);
    if (chunk === null) {
      yield* translator.end();
      return;
    }
    yield* translator.push(chunk);
  }
}

async function readNext(
  answer: HttpResponse,
  isFinished: boolean,
  context: CallContext,
): Promise<Buffer | null> {
  try {
    return await answer.next();
  } catch (error) {
    if (isFinished && error instanceof UpstreamError) {
      context.log.debug({ err: error }, 'the stream was cut after its end');
      return null;
    }
    throw error;
  }
}
