import type { ServerResponse } from 'node:http';
import type { AppError } from '../../shared/contract/errors.ts';
import type { CancelCause } from '../../shared/reply/worker-control.ts';
import type { PooledBuffer } from '../../shared/runtime/buffer-pool.ts';
import { resetForUnreadResponse, wasResetForUnreadResponse } from '../callers/unread-callers.ts';
import type { Receiver } from './pending-reply.ts';
import { presentError } from '../present/error-body.ts';

/** A comment is sent at least every ten seconds while there is no output, so that no proxy closes the connection. */
export const keepAliveMs = 9_000;

export const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // Stops nginx from buffering the events.
  'x-accel-buffering': 'no',
};

/**
 * Interval at which the worker of a slow client is notified again. If the notifications stop, the worker cancels the
 * request.
 */
const pauseReminderMs = 5_000;
/**
 * Maximum bytes buffered for a slow client beyond the socket's buffer. Such bytes come from frames that were already in
 * transit when the worker was notified.
 */
const maxPendingBytes = 8_000_000;

const eventEnd = '\n\n';

function endOf(data: Buffer | string): string {
  if (typeof data === 'string') return data.slice(-eventEnd.length);
  return data.toString('latin1', Math.max(0, data.length - eventEnd.length));
}

/** How a stream controls its request. */
export interface StreamedRequest {
  /** Position in the queue, 1 is next; null if unknown or if a worker runs the request. */
  position(): number | null;
  pause(): void;
  resume(): void;
  /** Call when the client has disconnected, or for the reason in `cause`. */
  cancel(cause?: CancelCause): void;
}

/**
 * Streams a response to the socket. The status line is delayed until the first event, so that a request that fails
 * before any output gets a plain error with its own status. Later errors become the last event of the stream.
 */
export class SseStream implements Receiver {
  readonly response: ServerResponse;
  readonly #timer: NodeJS.Timeout;
  #request: StreamedRequest | null = null;
  /** When the worker was last notified that the client is slow; null if the client keeps up. */
  #pausedAtMs: number | null = null;
  #hasEnded = false;
  /** The error that ended the stream, sent as its last event. */
  failure: AppError | null = null;
  #lastWriteMs = performance.now();
  /** The last bytes written, which show whether an event is complete. */
  #lastBytes = eventEnd;
  #failEarly: ((error: AppError) => void) | null = null;
  #done: (() => void) | null = null;
  /**
   * Resolves when the response is complete or the client has disconnected. Rejects if an error occurs before the first
   * byte.
   */
  readonly finished: Promise<void>;

  /** @param signal aborts when the response is closed */
  constructor(response: ServerResponse, signal: AbortSignal) {
    this.response = response;
    this.finished = new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#failEarly = reject;
    });
    // Callers that await it see the failure. A failure before anyone awaits must not crash the process.
    this.finished.catch(() => undefined);
    this.#timer = setInterval(() => {
      if (this.#pausedAtMs === null) this.#keepAlive();
      else if (performance.now() - this.#pausedAtMs >= pauseReminderMs) this.#pause();
    }, 1_000);
    const onClose = (): void => {
      if (this.#hasEnded) return;
      this.#end();
      this.#request?.cancel(wasResetForUnreadResponse(response.req.socket) ? { isUnread: true } : {});
    };
    // The client may have disconnected while the request was read and tokenized.
    if (signal.aborted) onClose();
    else signal.addEventListener('abort', onClose, { once: true });
    response.on('drain', () => {
      if (this.#pausedAtMs === null) return;
      this.#pausedAtMs = null;
      this.#request?.resume();
    });
  }

  /** Connects the stream to its request: from now on, the worker is notified when the client is slow or disconnects. */
  attach(request: StreamedRequest): void {
    this.#request = request;
    if (this.#hasEnded) request.cancel();
    else if (this.#pausedAtMs !== null) request.pause();
  }

  delta(bytes: Buffer): void {
    this.#write(bytes);
  }

  /** A partially sent event cannot be sent again. */
  mayRestart(): boolean {
    return !this.#isMidEvent;
  }

  end({ bytes }: PooledBuffer): void {
    if (this.#hasEnded) return;
    this.#write(bytes);
    this.#end();
    this.response.end();
  }

  fail(error: AppError): void {
    if (this.#hasEnded) return;
    if (!this.response.headersSent) {
      clearInterval(this.#timer);
      this.#hasEnded = true;
      this.#failEarly?.(error);
      return;
    }
    this.failure = error;
    // The current event stays incomplete. End it, so that the error follows as a separate event.
    if (this.#isMidEvent) this.#write(eventEnd);
    this.#write(`data: ${JSON.stringify(presentError(error))}\n\n`);
    this.#end();
    this.response.end();
  }

  /** Whether the last event is incomplete: a large event arrives in several frames. */
  get #isMidEvent(): boolean {
    return this.#lastBytes !== eventEnd;
  }

  /**
   * Writes a comment unless an event is incomplete. Not called for a slow client, whose connection is not idle anyway.
   */
  #keepAlive(): void {
    if (this.#isMidEvent) return;
    if (performance.now() - this.#lastWriteMs < keepAliveMs) return;
    const position = this.#request?.position() ?? null;
    this.#write(position === null ? ': keep-alive\n\n' : `: queued position=${position}\n\n`);
  }

  #write(data: Buffer | string): void {
    if (this.#hasEnded) return;
    this.#lastWriteMs = performance.now();
    this.#lastBytes = (this.#lastBytes + endOf(data)).slice(-eventEnd.length);
    if (!this.response.headersSent) {
      this.response.writeHead(200, eventStreamHeaders);
    }
    const flushed = this.response.write(data);
    // A disconnected client reads nothing either, but needs no pause: its worker is notified of the disconnect
    // immediately.
    if (flushed || this.response.socket?.destroyed !== false) return;
    if (this.response.writableLength > maxPendingBytes) {
      resetForUnreadResponse(this.response.req.socket);
      return;
    }
    if (this.#pausedAtMs === null) this.#pause();
  }

  /** The stall guard disconnects clients that read nothing at all. */
  #pause(): void {
    this.#pausedAtMs = performance.now();
    this.#request?.pause();
  }

  #end(): void {
    this.#hasEnded = true;
    clearInterval(this.#timer);
    this.#done?.();
  }
}
