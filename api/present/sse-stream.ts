import type { ServerResponse } from 'node:http';
import type { AppError } from '../../shared/contract/errors.ts';
import type { CancelCause } from '../../shared/reply/reply-channel.ts';
import type { LentBuffer } from '../../shared/runtime/buffer-pool.ts';
import { cutUnread, wasCutUnread } from '../callers/unread-callers.ts';
import type { Receiver } from '../dispatch/waiter.ts';
import { presentError } from './error-body.ts';

/** A comment goes out at least every ten seconds while nothing is generated, so that no proxy cuts the connection. */
export const keepAliveMs = 9_000;

export const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // Stops nginx from gathering the events of a stream before it passes them on.
  'x-accel-buffering': 'no',
};

/** How often a worker is told that a reader is still slow: one that hears nothing for longer gives it up. */
const pauseAgainMs = 5_000;
/** What may wait for a slow reader in this process beyond the socket's own buffer; frames under way fill it. */
const maxPendingBytes = 8_000_000;

const eventEnd = '\n\n';

function endOf(data: Buffer | string): string {
  if (typeof data === 'string') return data.slice(-eventEnd.length);
  return data.toString('latin1', Math.max(0, data.length - eventEnd.length));
}

/** A request whose answer is streamed, as its stream controls it. */
export interface StreamedRequest {
  /** Its place in the queue, 1 the next; null where it is not known, or a worker has it. */
  position(): number | null;
  pause(): void;
  resume(): void;
  /** The caller has gone: by its own choice, unless the cause says otherwise. */
  cancel(cause?: CancelCause): void;
}

/**
 * A streamed answer on its way to the socket. The status line waits for the first event, so that a request that fails
 * before any output is a plain error with its own status; after it, errors are the stream's last event.
 */
export class SseStream implements Receiver {
  readonly response: ServerResponse;
  readonly #timer: NodeJS.Timeout;
  #request: StreamedRequest | null = null;
  /** Since when its worker knows that the reader is behind; null while it is not. */
  #pausedAtMs: number | null = null;
  #ended = false;
  /** The error that the stream ended with, as its last event. */
  failure: AppError | null = null;
  #lastWriteMs = performance.now();
  /** The last bytes that were written: the end of an event, or not. */
  #written = eventEnd;
  #failEarly: ((error: AppError) => void) | null = null;
  #done: (() => void) | null = null;
  /** Resolves when the answer is complete or its caller has gone; rejects with an error that came before any byte. */
  readonly finished: Promise<void>;

  constructor(response: ServerResponse) {
    this.response = response;
    this.finished = new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#failEarly = reject;
    });
    // Whoever awaits it sees the failure; one that comes before somebody does must not end the process.
    this.finished.catch(() => undefined);
    this.#timer = setInterval(() => {
      if (this.#pausedAtMs === null) this.#keepAlive();
      else if (performance.now() - this.#pausedAtMs >= pauseAgainMs) this.#pause();
    }, 1_000);
    const onClose = (): void => {
      if (this.#ended) return;
      this.#end();
      this.#request?.cancel(wasCutUnread(response.req.socket) ? { isUnread: true } : {});
    };
    // A caller may have gone while the request was read and counted: `close` does not come again.
    if (response.destroyed) onClose();
    else response.once('close', onClose);
    response.on('drain', () => {
      if (this.#pausedAtMs === null) return;
      this.#pausedAtMs = null;
      this.#request?.resume();
    });
  }

  /** From now on a slow or gone reader is the worker's to know. */
  attach(request: StreamedRequest): void {
    this.#request = request;
    if (this.#ended) request.cancel();
    else if (this.#pausedAtMs !== null) request.pause();
  }

  delta(bytes: Buffer): void {
    this.#write(bytes);
  }

  /** An event that was begun cannot be begun again. */
  mayRestart(): boolean {
    return !this.#isMidEvent;
  }

  end({ bytes }: LentBuffer): void {
    if (this.#ended) return;
    this.#write(bytes);
    this.#end();
    this.response.end();
  }

  fail(error: AppError): void {
    if (this.#ended) return;
    if (!this.response.headersSent) {
      clearInterval(this.#timer);
      this.#ended = true;
      this.#failEarly?.(error);
      return;
    }
    this.failure = error;
    // The event being written stays incomplete. The error still follows as an event of its own.
    if (this.#isMidEvent) this.#write(eventEnd);
    this.#write(`data: ${JSON.stringify(presentError(error))}\n\n`);
    this.#end();
    this.response.end();
  }

  /** A large event comes in several pieces. */
  get #isMidEvent(): boolean {
    return this.#written !== eventEnd;
  }

  /** Not for a reader that is behind, which has bytes on their way, nor within an event. */
  #keepAlive(): void {
    if (this.#isMidEvent) return;
    if (performance.now() - this.#lastWriteMs < keepAliveMs) return;
    const position = this.#request?.position() ?? null;
    this.#write(position === null ? ': keep-alive\n\n' : `: queued position=${position}\n\n`);
  }

  #write(data: Buffer | string): void {
    if (this.#ended) return;
    this.#lastWriteMs = performance.now();
    this.#written = (this.#written + endOf(data)).slice(-eventEnd.length);
    if (!this.response.headersSent) {
      this.response.writeHead(200, eventStreamHeaders);
    }
    const flushed = this.response.write(data);
    // A caller who has gone reads nothing either, and is no slow reader: its worker is told that it left, at once.
    if (flushed || this.response.socket?.destroyed !== false) return;
    if (this.response.writableLength > maxPendingBytes) {
      cutUnread(this.response.req.socket);
      return;
    }
    if (this.#pausedAtMs === null) this.#pause();
  }

  /** A reader that takes nothing at all is cut by the stall guard. */
  #pause(): void {
    this.#pausedAtMs = performance.now();
    this.#request?.pause();
  }

  #end(): void {
    this.#ended = true;
    clearInterval(this.#timer);
    this.#done?.();
  }
}
