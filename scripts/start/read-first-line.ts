import type { Readable } from 'node:stream';

/**
 * Reads the first line that a process prints.
 * @throws Error if `signal` reports that the process exited without one
 */
export function readFirstLine(stream: Readable, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const finish = (): void => {
      stream.off('data', onData);
      signal.removeEventListener('abort', onAbort);
    };
    const onData = (chunk: Buffer): void => {
      text += chunk.toString();
      const end = text.indexOf('\n');
      if (end === -1) return;
      finish();
      resolve(text.slice(0, end));
    };
    const onAbort = (): void => {
      finish();
      reject(new Error('it exited before it was ready'));
    };
    stream.on('data', onData);
    signal.addEventListener('abort', onAbort);
  });
}
