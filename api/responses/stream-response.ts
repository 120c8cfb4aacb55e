import { toAppError } from '../../shared/contract/errors.ts';
import type { SseStream, StreamedRequest } from '../requests/replies/sse-stream.ts';
import type { ApiContext } from '../http/request/context.ts';

/**
 * Streams a response until it is complete or the client has disconnected.
 * @param start begins to fill the stream
 * @throws AppError if the request fails before the first byte
 */
export async function streamResponse(
  context: ApiContext,
  stream: SseStream,
  start: () => Promise<StreamedRequest>,
): Promise<void> {
  const { state } = context;
  stream.onEnd = () => {
    const { failure, firstOutputAtMs } = stream;
    if (failure !== null) Object.assign(state, { error: failure, isBroken: true });
    if (firstOutputAtMs !== null) state.firstOutputAtMs = firstOutputAtMs;
  };
  await start().then(
    (request) => stream.attach(request),
    (error: unknown) => stream.fail(toAppError(error)),
  );
  // The stream writes its own headers and body; Koa is needed only if it fails before the first byte.
  await stream.finished;
  context.respond = false;
}
