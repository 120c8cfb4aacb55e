import { AppError } from '../../shared/contract/errors.ts';
import { nextWorkTurn } from '../../shared/fairness/work-turns.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { requesterOf } from '../middleware/requester.ts';
import { chunkBuffer, sendChunks, type ChunkedBody, type ChunkSource } from '../present/send-chunks.ts';

/** Larger bodies leave in chunks, as their callers take them. */
const chunkFromBytes = 256 * 1024;

/**
 * Answers with JSON that is ready for the socket. Of a large one, resolves when its caller has taken it or has gone: until
 * then it is held.
 */
export async function sendBody(context: ApiContext, body: Buffer | ChunkedBody, status = 200): Promise<void> {
  context.status = status;
  context.type = 'application/json';
  const byteLength = Buffer.isBuffer(body) ? body.length : (body.byteLength ?? Infinity);
  if (byteLength < chunkFromBytes) {
    context.body = Buffer.isBuffer(body) ? body : gather(body, byteLength);
    return;
  }
  const chunks = Buffer.isBuffer(body) ? chunkBuffer(body) : body;
  await sendInChunks(context, chunks, () => nextWorkTurn(requesterOf(context)), status);
}

/**
 * Answers with a body that leaves in chunks. Resolves when its caller has taken it or has gone.
 * @param nextTurn waits for a turn at making the next chunk
 * @throws AppError what the body could not be read for; the connection is to be ended
 */
export async function sendInChunks(
  context: ApiContext,
  body: ChunkSource,
  nextTurn: () => Promise<void>,
  status = 200,
): Promise<void> {
  context.status = status;
  if (body.byteLength !== undefined) context.length = body.byteLength;
  // Koa has nothing to add.
  context.respond = false;
  try {
    await sendChunks(context.res, body, nextTurn);
  } catch (error) {
    if (error instanceof AppError) throw error;
    // Nobody can be told of anything but by the end of the connection.
    if (!context.res.destroyed) context.res.destroy(error as Error);
  }
}

function gather(body: ChunkedBody, byteLength: number): Buffer {
  const whole = Buffer.allocUnsafe(byteLength);
  let at = 0;
  for (let length = body.write(whole); length > 0; length = body.write(whole.subarray(at))) at += length;
  return whole;
}
