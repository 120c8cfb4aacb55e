import type { IncomingMessage } from 'node:http';

/** How much of an unwanted body is read, and for how long, so that its sender gets to read the response. */
const drainBytes = 128_000_000;
const drainMs = 10_000;

/**
 * Reads the rest of a body, within limits. A client that is still writing when its response arrives sees a broken
 * connection instead.
 * @returns whether the body reached its end
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
