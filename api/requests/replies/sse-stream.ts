import type { ServerResponse } from 'node:http';
import type { AppError } from '../../../shared/contract/errors.ts';
import type { CancelCause } from '../../../shared/work/replies/worker-control.ts';
import type { PooledBuffer } from '../../../shared/platform/runtime/buffer-pool.ts';
import { resetForUnreadResponse, wasResetForUnreadResponse } from '../../http/callers/unread-callers.ts';
import { defaultFirstCommentMs, EventStream } from './event-stream.ts';
import type { Receiver } from './pending-reply.ts';
import { hasIdempotencyKey } from '../../http/responses/error-headers.ts';
import { presentError } from '../../../shared/responses/error-body.ts';

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

/** How a stream controls its request. */
export interface StreamedRequest {
  /** Position in the queue, 1 is next; null if unknown or if a worker runs the request. */
  position(): number | null;
  pause(): void;
  resume(): void;
  /** Call when the client has disconnected, or for the reason in `cause`. */
  cancel(cause?: CancelCause): void;
}

export interface SseStreamOptions {
  /** How long the stream may be silent before its first comment. */
  readonly firstCommentMs?: number;
  /** Whether a comment may be written now. A comment also sends the status line. */
  readonly mayComment?: () => boolean;
}

/**
 * Streams a response to the socket. The status line is delayed until the first event, so that a request that fails
 * before any output gets a plain error with its own status. Later errors become the last event of the stream.
 */
export class SseStream implements Receiver {
  readonly response: ServerResponse;
  readonly #events: EventStream;
  #request: StreamedRequest | null = null;
  /** Notifies the worker repeatedly that the client is slow; null if the client keeps up. */
  #pauseReminder: NodeJS.Timeout | null = null;
  #hasEnded = false;
  /** The error that ended the stream, sent as its last event. */
  failure: AppError | null = null;
  /** When the first output was written, according to `performance.now` (ms). */
  firstOutputAtMs: number | null = null;
  #failEarly: ((error: AppError) => void) | null = null;
  #done: (() => void) | null = null;
  /** Called when the stream has ended, before its response is closed. */
  onEnd: (() => void) | null = null;
  /**
   * Resolves when the response is complete or the client has disconnected. Rejects if an error occurs before the first
   * byte.
   */
  readonly finished: Promise<void>;

  /** @param signal aborts when the response is closed */
  constructor(
    response: ServerResponse,
    signal: AbortSignal,
    { firstCommentMs = defaultFirstCommentMs, mayComment = () => true }: SseStreamOptions = {},
  ) {
    this.response = response;
    this.finished = new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#failEarly = reject;
    });
    // Callers that await it see the failure. A failure before anyone awaits must not crash the process.
    this.finished.catch(() => undefined);
    this.#events = new EventStream(response, firstCommentMs, () =>
      mayComment() ? this.#describeSilence() : null,
    );
    const onClose = (): void => {
      if (this.#hasEnded) return;
      this.#end();
      this.#request?.cancel(wasResetForUnreadResponse(response.req.socket) ? { isUnread: true } : {});
    };
    // The client may have disconnected while the request was read and tokenized.
    if (signal.aborted) onClose();
    else signal.addEventListener('abort', onClose, { once: true });
    response.on('drain', () => {
      if (this.#pauseReminder === null) return;
      this.#stopReminder();
      this.#request?.resume();
    });
  }

  /** Connects the stream to its request: from now on, the worker is notified when the client is slow or disconnects. */
  attach(request: StreamedRequest): void {
    this.#request = request;
    if (this.#hasEnded) request.cancel();
    else if (this.#pauseReminder !== null) request.pause();
  }

  delta(bytes: Buffer): void {
    this.firstOutputAtMs ??= performance.now();
    this.#write(bytes);
  }

  /** A partially sent event cannot be sent again. */
  mayRestart(): boolean {
    return !this.#events.isMidEvent;
  }

  end({ bytes, release }: PooledBuffer): void {
    if (this.#hasEnded) {
      release();
      return;
    }
    // The socket may keep the bytes until then.
    this.response.once('close', release);
    this.firstOutputAtMs ??= performance.now();
    this.#write(bytes);
    this.#end();
    this.response.end();
  }

  /** Ends a stream that has nothing to send. If its headers were not sent, the caller sends the response. */
  endWithoutOutput(): void {
    if (this.#hasEnded) return;
    this.#end();
    if (this.response.headersSent) this.response.end();
  }

  fail(error: AppError): void {
    if (this.#hasEnded) return;
    if (!this.response.headersSent) {
      this.#close();
      this.#failEarly?.(error);
      return;
    }
    this.failure = error;
    // The current event stays incomplete. End it, so that the error follows as a separate event.
    this.#events.completeEvent();
    const hasKey = hasIdempotencyKey(this.response.req.headers);
    this.#write(`data: ${JSON.stringify(presentError(error, { hasKey }))}\n\n`);
    this.#end();
    this.response.end();
  }

  /** Returns null for a slow client, whose connection is not idle anyway. */
  #describeSilence(): string | null {
    if (this.#pauseReminder !== null) return null;
    const position = this.#request?.position() ?? null;
    return position === null ? 'keep-alive' : `queued position=${position}`;
  }

  #write(data: Buffer | string): void {
    if (this.#hasEnded) return;
    const flushed = this.#events.write(data);
    // A disconnected client reads nothing either, but needs no pause: its worker is notified of the disconnect
    // immediately.
    if (flushed || this.response.socket?.destroyed !== false) return;
    if (this.response.writableLength > maxPendingBytes) {
      resetForUnreadResponse(this.response.req.socket);
      return;
    }
    if (this.#pauseReminder === null) this.#pause();
  }

  /** The stall guard disconnects clients that read nothing at all. */
  #pause(): void {
    this.#request?.pause();
    this.#pauseReminder = setInterval(() => this.#request?.pause(), pauseReminderMs);
  }

  #stopReminder(): void {
    if (this.#pauseReminder !== null) clearInterval(this.#pauseReminder);
    this.#pauseReminder = null;
  }

  #end(): void {
    this.#close();
    this.onEnd?.();
    this.#done?.();
  }

  #close(): void {
    this.#hasEnded = true;
    this.#events.close();
    this.#stopReminder();
  }
}
