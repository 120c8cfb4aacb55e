// decision 0014
import type { HeartbeatRequest } from '../../../shared/money/reservation-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { encodeLastError } from '../../../shared/work/replies/error-payload.ts';
import type { StoringRequest } from '../../../shared/work/replies/response-store.ts';
import type { StoredRequest } from '../../../shared/work/replies/stored-frames-store.ts';
import { runInBackground } from '../../../shared/platform/runtime/run-in-background.ts';
import {
  StoredResponseReader,
  type FollowedResponse,
  type StoredResponsesDeps,
  type ReaderOptions,
} from './stored-response-reader.ts';
import type { Receiver } from '../replies/pending-reply.ts';

/** The controls of a streamed stored response. */
export interface StreamedResponse extends FollowedResponse {
  /** Always null: it does not wait in a queue. */
  position(): null;
}

/**
 * Responses that outlive their connection. Every caller, the first one and those that retry, reads all frames of the
 * request from storage.
 */
export class StoredResponses {
  readonly #deps: StoredResponsesDeps;
  readonly #readers = new Map<string, Set<StoredResponseReader>>();

  constructor(deps: StoredResponsesDeps) {
    this.#deps = deps;
  }

  /** Passes a request's response to the receiver: first the stored part, then the rest as it arrives. */
  follow(request: HeartbeatRequest, receiver: Receiver, options: ReaderOptions): FollowedResponse {
    const { requestId } = request;
    const reader = new StoredResponseReader(this.#deps, request, receiver, options);
    const others = this.#readers.get(requestId) ?? new Set();
    others.add(reader);
    this.#readers.set(requestId, others);
    const reading = reader.run().finally(() => {
      others.delete(reader);
      if (others.size === 0 && this.#readers.get(requestId) === others) this.#readers.delete(requestId);
    });
    runInBackground(reading, 'reading a stored response', this.#deps.log);
    return reader;
  }

  /** Whether this is a resumable stream of the account that still runs or is stored. */
  async canResume(request: HeartbeatRequest): Promise<boolean> {
    return await this.#deps.frames.canResume(request);
  }

  /** Streams the stored response of an earlier request. */
  attachStream(request: HeartbeatRequest, receiver: Receiver): StreamedResponse {
    const reader = this.follow(request, receiver, { hasMemory: false });
    return {
      position: () => null,
      pause: () => reader.pause(),
      resume: () => reader.resume(),
      cancel: () => reader.cancel(),
    };
  }

  /** Reads the beginning of the response of a durable job that has succeeded. Null if there is none. */
  async readStart(request: HeartbeatRequest, byteLength: number): Promise<Buffer | null> {
    return await this.#deps.responses.readStart(request, byteLength);
  }

  /** Deletes what is stored of the response of a durable job that has ended. */
  async delete(request: StoringRequest): Promise<void> {
    await this.#deps.responses.delete(request);
  }

  /** Accounts with responses being read here. */
  *accounts(): Generator<string> {
    for (const readers of this.#readers.values()) {
      for (const reader of readers) yield reader.accountId;
    }
  }

  /** Ends the responses that an account is reading here, including replays. */
  endAccount(accountId: string, error: AppError): void {
    for (const readers of this.#readers.values()) {
      for (const reader of readers) if (reader.accountId === accountId) reader.fail(error);
    }
  }

  /** Ends all responses that are being read here, because the process exits. Their requests continue. */
  endReaders(): void {
    for (const readers of this.#readers.values()) for (const reader of readers) reader.fail(readerMovesOn());
  }

  /**
   * Creates the receiver for the dispatcher that owns the request. It only wakes readers, which read the frames from
   * storage.
   */
  createOwner(request: StoredRequest): Receiver {
    const wake = (): void => this.#wake(request);
    return { delta: wake, end: wake, fail: (error) => this.fail(request, error) };
  }

  /**
   * Stores an error as the end of a response that will not arrive. If a worker has already stored an end, readers stop
   * at that one.
   */
  fail(request: StoredRequest, error: AppError): void {
    const { frames, log } = this.#deps;
    const { requestId } = request;
    frames.append(request, 'error', encodeLastError(requestId, error)).catch((failure: unknown) => {
      log.warn({ requestId, err: failure }, 'error of a stored response not stored');
    });
    this.#wake(request);
  }

  #wake({ requestId }: HeartbeatRequest): void {
    for (const reader of this.#readers.get(requestId) ?? []) reader.wake();
  }
}

const readerMovesOn = (): AppError =>
  new AppError('service_unavailable', {
    message:
      'The server was restarted before the response was complete. The request continues: send it again with the same ' +
      'Idempotency-Key, or resume its stream with Last-Event-ID.',
    messageRu:
      'Сервер был перезапущен до завершения ответа. Запрос выполняется дальше: отправьте его ещё раз с тем же ' +
      'Idempotency-Key или продолжите чтение потока с Last-Event-ID.',
    expose: true,
  });
