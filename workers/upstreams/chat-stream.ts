import type { HttpAnswer } from './http-client.ts';
import { type CallContext, type ChatEvent, UpstreamError } from './upstream.ts';

/** The state machine of a dialect's chat stream: bytes in, events out. Pure; throws UpstreamError. */
export interface ChatStreamTranslator {
  /** Takes the next bytes of the body, split anywhere. Gives what was said before it throws. */
  push(bytes: Uint8Array): Iterable<ChatEvent>;
  /** The body ended, or was cut: gives what is left to say, or throws where the stream had not come to its end. */
  end(): ChatEvent[];
  /** The dialect's end mark has come: nothing that follows counts. */
  readonly isDone: boolean;
  /** All that was to be said has been: a connection cut from here on takes nothing away. */
  readonly isFinished: boolean;
}

/** Reads a streamed answer to its end, or until nobody listens any more. */
export async function* readChatStream(
  answer: HttpAnswer,
  translator: ChatStreamTranslator,
  context: CallContext,
): AsyncGenerator<ChatEvent> {
  let isOver = false;
  try {
    yield* translate(answer, translator, context);
    isOver = true;
  } finally {
    // Who stops listening stops the vendor at once; after the end the connection is worth keeping.
    if (isOver) {
      answer.release();
    } else {
      answer.abort();
    }
  }
}

async function* translate(
  answer: HttpAnswer,
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
  answer: HttpAnswer,
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
