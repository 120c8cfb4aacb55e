import { holderOf } from '../middleware/authenticate.ts';
import type { ApiContext } from '../middleware/request-context.ts';
import { chunkBuffer, sendChunks, type ChunkedBody } from '../present/send-chunks.ts';

/** Larger bodies leave in chunks, at a least pace. */
const chunkFromBytes = 256 * 1024;

/**
 * Answers with JSON that is ready for the socket. Of a large one, resolves when its caller has taken it or has gone: until
 * then it is held.
 */
export async function sendBody(context: ApiContext, body: Buffer | ChunkedBody): Promise<void> {
  context.type = 'application/json';
  const byteLength = Buffer.isBuffer(body) ? body.length : (body.byteLength ?? Infinity);
  if (byteLength < chunkFromBytes) {
    context.body = Buffer.isBuffer(body) ? body : gather(body, byteLength);
    return;
  }
  const chunked = Buffer.isBuffer(body) ? chunkBuffer(body) : body;
  context.status = 200;
  if (byteLength < Infinity) context.length = byteLength;
  // Koa has nothing to add.
  context.respond = false;
  try {
    await sendChunks(context.res, chunked, holderOf(context).accountId);
  } catch (error) {
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
