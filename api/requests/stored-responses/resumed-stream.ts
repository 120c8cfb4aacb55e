import type { ServerResponse } from 'node:http';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import type { Receiver } from '../replies/pending-reply.ts';
import type { SseStream } from '../replies/sse-stream.ts';
import type { EventSkipper } from './event-skipper.ts';

/** Passes on the part of a stored stream that follows the last event that its reader has. */
export class ResumedStream implements Receiver {
  readonly response: ServerResponse;
  readonly #stream: SseStream;
  readonly #skipper: EventSkipper;
  #hasOutput = false;
  /** Whether the stream has ended and its reader had everything. */
  isComplete = false;

  /** @param skipper skips what the reader has */
  constructor(stream: SseStream, skipper: EventSkipper) {
    this.response = stream.response;
    this.#stream = stream;
    this.#skipper = skipper;
  }

  delta(bytes: Buffer): void {
    const rest = this.#skipper.take(bytes);
    if (rest.length === 0) return;
    this.#hasOutput = true;
    this.#stream.delta(rest);
  }

  end(response: PooledBuffer): void {
    const bytes = this.#skipper.take(response.bytes);
    this.isComplete = bytes.length === 0 && !this.#hasOutput;
    if (!this.isComplete) {
      this.#stream.end({ ...response, bytes });
      return;
    }
    this.#stream.endWithoutOutput();
    response.release();
  }

  fail(error: AppError): void {
    this.#stream.fail(error);
  }
}
