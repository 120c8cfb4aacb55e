import type { HeldRequest } from '../../shared/billing/reservation-store.ts';
import type { AppError } from '../../shared/contract/errors.ts';
import { encodeLastError } from '../../shared/reply/error-payload.ts';
import { runInBackground } from '../../shared/runtime/run-in-background.ts';
import {
  KeptAnswerReader,
  type FollowedAnswer,
  type KeptAnswersDependencies,
  type ReaderOptions,
} from './kept-answer-reader.ts';
import type { Receiver } from './waiter.ts';

/** A kept answer, as a stream of it is controlled. */
export interface StreamedAnswer extends FollowedAnswer {
  /** It waits in no queue. */
  position(): null;
}

/**
 * Answers that are kept beyond their socket: every caller, the first and those that send the request again, reads the
 * request's frames from where they are kept, from the beginning and on to the end.
 */
export class KeptAnswers {
  readonly #dependencies: KeptAnswersDependencies;
  readonly #readers = new Map<string, Set<KeptAnswerReader>>();

  constructor(dependencies: KeptAnswersDependencies) {
    this.#dependencies = dependencies;
  }

  /** Hands the receiver a request's answer, as far as it has come and as it comes. */
  follow(request: HeldRequest, receiver: Receiver, options: ReaderOptions): FollowedAnswer {
    const { requestId } = request;
    const reader = new KeptAnswerReader(this.#dependencies, request, receiver, options);
    const others = this.#readers.get(requestId) ?? new Set();
    others.add(reader);
    this.#readers.set(requestId, others);
    const reading = reader.run().finally(() => {
      others.delete(reader);
      if (others.size === 0 && this.#readers.get(requestId) === others) this.#readers.delete(requestId);
    });
    runInBackground(reading, 'reading a kept answer', this.#dependencies.log);
    return reader;
  }

  /** Hands a stream the kept answer of a request that was sent before. */
  attachStream(request: HeldRequest, receiver: Receiver): StreamedAnswer {
    const reader = this.follow(request, receiver, { hasMemory: false });
    return {
      position: () => null,
      pause: () => reader.pause(),
      resume: () => reader.resume(),
      cancel: () => reader.cancel(),
    };
  }

  /** Accounts whose answers are read here. */
  *accounts(): Generator<string> {
    for (const readers of this.#readers.values()) {
      for (const reader of readers) yield reader.accountId;
    }
  }

  /** Ends the answers that an account reads here, those that are given again too. */
  endAccount(accountId: string, error: AppError): void {
    for (const readers of this.#readers.values()) {
      for (const reader of readers) if (reader.accountId === accountId) reader.fail(error);
    }
  }

  /** A receiver for the process that owns the request: the frames reach their readers from where they are kept. */
  createOwner(request: HeldRequest): Receiver {
    const wake = (): void => this.#wake(request);
    return { delta: wake, end: wake, fail: (error) => this.fail(request, error) };
  }

  /** Ends an answer that will not come. Where the worker ended it before, its readers have stopped there. */
  fail(request: HeldRequest, error: AppError): void {
    const { frames, log } = this.#dependencies;
    const { requestId } = request;
    frames.append(request, 'error', encodeLastError(requestId, error)).catch((failure: unknown) => {
      log.warn({ requestId, err: failure }, 'the end of a kept answer could not be told');
    });
    this.#wake(request);
  }

  #wake({ requestId }: HeldRequest): void {
    for (const reader of this.#readers.get(requestId) ?? []) reader.wake();
  }
}
