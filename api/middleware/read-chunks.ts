import type { IncomingMessage } from 'node:http';
import { AppError } from '../../shared/contract/errors.ts';
import { BodyPace, type BodyTimes } from './body-pace.ts';

export interface ChunkReader {
  /** Takes what has come. Where it returns a promise nothing more is read until that is resolved. */
  take(chunk: Buffer): void | Promise<void>;
  /** Whether the body is known to be large by now. */
  isLarge(): boolean;
}

/**
 * Reads a body chunk by chunk. Ends with the body, or with what `take` throws, or with an error where the body comes too
 * slowly; the rest is then left unread, to be drained by whoever answers the error.
 * By events: an iterator costs a short body as much as all else that is done with it.
 */
export async function readChunks(
  request: IncomingMessage,
  times: BodyTimes,
  reader: ChunkReader,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let isSettled = false;
    const settle = (error?: unknown): void => {
      if (isSettled) return;
      isSettled = true;
      pace.stop();
      request.off('data', onData).off('end', settle).off('error', onClose).off('close', onClose);
      if (error === undefined) {
        resolve();
        return;
      }
      request.pause();
      reject(error);
    };
    const pace = new BodyPace(() => reader.isLarge(), times, settle);
    const waitFor = async (taken: Promise<void>): Promise<void> => {
      const fromMs = performance.now();
      request.pause();
      await taken;
      pace.exclude(performance.now() - fromMs);
      if (!isSettled) request.resume();
    };
    const onData = (chunk: Buffer): void => {
      pace.add(chunk.length);
      try {
        const taken = reader.take(chunk);
        if (taken !== undefined) waitFor(taken).catch(settle);
      } catch (error) {
        settle(error);
      }
    };
    const onClose = (): void => settle(new AppError('job_cancelled'));
    request.on('data', onData).on('end', settle).on('error', onClose).on('close', onClose);
    // Its caller may have left before anybody listened.
    if (request.destroyed) onClose();
  });
}
