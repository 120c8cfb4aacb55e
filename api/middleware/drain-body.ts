import type { IncomingMessage } from 'node:http';

/** How much of a body that nobody wants is still read, so that its sender gets to the answer, and for how long. */
const drainBytes = 128_000_000;
const drainMs = 10_000;

/**
 * Reads on to the end of a body, within bounds. A client that still writes when its answer comes sees a broken
 * connection in its place.
 * @returns whether the body came to its end
 */
export async function drainBody(request: IncomingMessage): Promise<boolean> {
  if (request.readableEnded || request.destroyed) return true;
  await new Promise<void>((resolve) => {
    let left = drainBytes;
    const onData = (chunk: Buffer): void => {
      left -= chunk.length;
      if (left < 0) done();
    };
    const timer = setTimeout(done, drainMs);
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
