import type { Writable } from 'node:stream';
import { keepAliveMs } from './sse-stream.ts';

/** Writes keep-alive comments to an event stream while the work runs, so that no proxy closes it. */
export async function whileKeptAlive<T>(
  stream: Writable,
  work: Promise<T>,
  everyMs = keepAliveMs,
): Promise<T> {
  const timer = setInterval(() => stream.write(': keep-alive\n\n'), everyMs);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}
