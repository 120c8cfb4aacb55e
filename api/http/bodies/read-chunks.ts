import type { IncomingMessage } from 'node:http';
import { AppError } from '../../../shared/contract/errors.ts';
import { BodyPace, type BodyTimes } from './body-pace.ts';

export interface ChunkReader {
  /** Processes a chunk. If it returns a promise, nothing more is read until that resolves. */
  onChunk(chunk: Buffer): void | Promise<void>;
  /** Whether the body is already known to be large. */
  isLarge(): boolean;
}

/**
 * Reads a body chunk by chunk. Resolves at its end. Rejects with errors that `onChunk` throws, or if the body arrives
 * too slowly; the rest is then drained when the error response is sent. Uses events, because an iterator would double
 * the cost of a short body.
 */
export async function readChunks(
  request: IncomingMessage,
  times: BodyTimes,
  reader: ChunkReader,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let isSettled = false;
    let isProcessing = false;
    let hasEnded = false;
    const settle = (error?: unknown): void => {
      if (isSettled) return;
      isSettled = true;
      pace.stop();
      request.off('data', onData).off('end', onEnd).off('error', onClose).off('close', onClose);
      if (error === undefined) {
        resolve();
        return;
      }
      request.pause();
      reject(error);
    };
    const pace = new BodyPace(() => reader.isLarge(), times, settle);
    const waitFor = async (processed: Promise<void>): Promise<void> => {
      const fromMs = performance.now();
      isProcessing = true;
      request.pause();
      await processed;
      isProcessing = false;
      pace.exclude(performance.now() - fromMs);
      if (hasEnded) settle();
      else if (!isSettled) request.resume();
    };
    // The end is reported with the last chunk, even if that has paused the body.
    const onEnd = (): void => {
      hasEnded = true;
      if (!isProcessing) settle();
    };
    const onData = (chunk: Buffer): void => {
      pace.add(chunk.length);
      try {
        const processed = reader.onChunk(chunk);
        if (processed !== undefined) waitFor(processed).catch(settle);
      } catch (error) {
        settle(error);
      }
    };
    const onClose = (): void => {
      if (!hasEnded) settle(new AppError('job_cancelled'));
    };
    request.on('data', onData).on('end', onEnd).on('error', onClose).on('close', onClose);
    // The client may have disconnected before the listeners were added.
    if (request.destroyed) onClose();
  });
}
