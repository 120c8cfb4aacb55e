import type { IncomingMessage } from 'node:http';

/** Limits for draining a rejected body. */
const maxDrainBytes = 128_000_000;
const maxDrainMs = 10_000;

/**
 * Reads the rest of a body, within limits. Otherwise, a client that is still writing when the response is sent would
 * see a broken connection.
 * @returns whether the body reached its end
 */
export async function drainBody(request: IncomingMessage): Promise<boolean> {
  if (request.readableEnded || request.destroyed) return true;
  await new Promise<void>((resolve) => {
    let remaining = maxDrainBytes;
    const onData = (chunk: Buffer): void => {
      remaining -= chunk.length;
      if (remaining < 0) done();
    };
    const timer = setTimeout(done, maxDrainMs);
    function done(): void {
      clearTimeout(timer);
      request.off('data', onData).off('end', done).off('close', done);
      request.pause();
      resolve();
    }
    request.on('data', onData).once('end', done).once('close', done);
    request.resume();
  });
  return request.readableEnded;
}
