import { AppError } from '../../shared/contract/errors.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import { chunkBuffer, type ChunkedBody, type ChunkSource } from '../../shared/responses/chunked-body.ts';
import { sendChunks } from '../http/responses/send-chunks.ts';
import type { ApiContext } from '../http/request/context.ts';
import { requesterOf } from '../http/request/requester.ts';

/** Bodies of this size or more are sent in chunks, as their clients read them. */
const minChunkedBytes = 256 * 1024;

/**
 * Responds with serialized JSON. For a large body, resolves once the client has read it or disconnected; the body stays
 * in memory until then.
 */
export async function sendBody(context: ApiContext, body: Buffer | ChunkedBody, status = 200): Promise<void> {
  context.status = status;
  context.type = 'application/json';
  const byteLength = Buffer.isBuffer(body) ? body.length : (body.byteLength ?? Infinity);
  if (byteLength < minChunkedBytes) {
    context.body = Buffer.isBuffer(body) ? body : gather(body, byteLength);
    return;
  }
  const chunks = Buffer.isBuffer(body) ? chunkBuffer(body) : body;
  await sendInChunks(context, chunks, () => nextWorkTurn(requesterOf(context)), status);
}

/**
 * Responds with a chunked body. Resolves once the client has read it or disconnected.
 * @param nextTurn waits for a turn before the next chunk is generated
 * @throws AppError if reading the body fails; the caller of this function must then close the connection
 */
export async function sendInChunks(
  context: ApiContext,
  body: ChunkSource,
  nextTurn: () => Promise<void>,
  status = 200,
): Promise<void> {
  context.status = status;
  if (body.byteLength !== undefined) context.length = body.byteLength;
  // The response is written directly, so Koa must not write.
  context.respond = false;
  try {
    await sendChunks(context.res, body, nextTurn);
  } catch (error) {
    if (error instanceof AppError) throw error;
    // The headers are sent, so closing the connection is the only way to signal the error.
    if (!context.res.destroyed) context.res.destroy(error as Error);
  }
}

function gather(body: ChunkedBody, byteLength: number): Buffer {
  const whole = Buffer.allocUnsafe(byteLength);
  let at = 0;
  for (let length = body.write(whole); length > 0; length = body.write(whole.subarray(at))) at += length;
  return whole;
}
