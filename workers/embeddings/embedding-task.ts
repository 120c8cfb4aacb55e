import { AppError } from '../../shared/contract/errors.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import type { CallObserver } from '../routing/call-observer.ts';
import { isServerError } from '../routing/retry-policy.ts';
import { UpstreamError } from '../upstreams/upstream.ts';
import type { Dimensions } from './waiting-inputs.ts';

/**
 * Reference count of the buffer that holds the vectors of one call. The buffer is returned to its pool when the
 * last reference is dropped.
 */
export class BufferRef {
  readonly #release: () => void;
  #references = 0;

  constructor(release: () => void) {
    this.#release = release;
  }

  take(): void {
    this.#references += 1;
  }

  drop(): void {
    this.#references -= 1;
    if (this.#references === 0) this.#release();
  }
}

/** The result of a vendor call for one input. For a vector from the cache, `billedMs` is 0. */
export interface EmbeddedInput {
  /** Read it only while holding a reference to its buffer. */
  readonly vector: Buffer;
  /** Null if the vector has its own memory. */
  readonly bufferRef: BufferRef | null;
  readonly dimensions: number;
  readonly tokens: number;
  /** Whether the count is ours: the vendor reported no tokens, or a sum that cannot be split among the inputs. */
  readonly counted: boolean;
  readonly billedMs: number;
  /** Its share of what the vendor charges for the call; null if that is unknown. 0 for a vector from the cache. */
  readonly vendorCostNano: bigint | null;
}

/** Why an input has no vector. */
export interface FailedInput {
  readonly error: unknown;
}

export type InputOutcome = EmbeddedInput | FailedInput;

/** Whether a vendor rejected the input of a call. Only the sender of the bad input is at fault. */
export function isInputRejection(error: unknown): boolean {
  const cause = error instanceof AppError ? error.cause : null;
  return cause instanceof UpstreamError && (cause.failure === 'rejected' || cause.failure === 'too_large');
}

/** The server's own failure that an error stands for, or null. One of the inputs of the call may be the reason. */
export function findServerError(error: unknown): UpstreamError | null {
  const cause = error instanceof AppError ? error.cause : null;
  return cause instanceof UpstreamError && isServerError(cause) ? cause : null;
}

/** The embedding work of one request, or of several lines of a batch file. */
export interface EmbeddingTask {
  readonly accountId: string;
  /** Whether it is for lines of a batch file. They have the most time, and fill what others leave of a call. */
  readonly isBackground?: boolean;
  readonly dimensions: Dimensions;
  /**
   * Call time cannot be attributed to single accounts, so a call billed by time contains only inputs of one
   * account.
   */
  readonly isPaidByTime: boolean;
  /** The end user, passed to the vendor if a call contains no other request's inputs. */
  readonly user: string | null;
  readonly inputs: readonly string[];
  /**
   * The number of each input's line, non-decreasing. If an input fails, so do the other inputs of its line that were not
   * sent, and no others. By default, all inputs are line 0.
   */
  readonly lines?: readonly number[];
  /** Our own token counts, one per input. */
  readonly inputTokens: readonly number[];
  /** Aborted when the caller disconnects, or when the task must stop immediately. */
  readonly signal: AbortSignal;
  /** Aborted before `signal` when the task must stop immediately, even if a model was called. */
  readonly stopSignal: AbortSignal;
  /**
   * Aborted when the process is about to exit. A request whose caller has disconnected is then settled with the
   * vectors it has.
   */
  readonly stopping?: AbortSignal;
  readonly deadlineAtMs: number;
  readonly log: Logger;
  /** Gets the calls with inputs of the task. */
  readonly observer?: CallObserver;
  /** For durable jobs: awaited before a model is called. If it rejects, the signal is aborted. */
  readonly begin?: () => Promise<void>;
  /** For durable jobs: called with the fraction of the inputs that are done, from 0 to 1. */
  readonly progress?: (done: number) => void;
  /**
   * Called with the lines that have ended, all those of a vendor call at once; each line once, the last ones before the
   * result. The callee must drop their vectors, and must not throw. With it, `signal` only withdraws the inputs that
   * were not sent: the outcomes of the others are still delivered, with their vectors.
   */
  readonly onLines?: (lines: readonly FinishedLine[]) => void;
}

/** A line whose inputs all have an outcome. */
export interface FinishedLine {
  /** Its number. */
  readonly line: number;
  /** One per input of the line, in order. They reference the vectors' buffers until `dropVectors` is called. */
  readonly outcomes: readonly InputOutcome[];
  /** Whether a model was called for any of its inputs, or all of them were cached. */
  readonly reachedModel: boolean;
}

export interface EmbeddingOutcomes {
  /**
   * One per input, in order. They reference the vectors' buffers until `dropVectors` is called. Empty if `onLines` got
   * them.
   */
  readonly outcomes: readonly InputOutcome[];
  /** Whether a model was called for any of the inputs, or all of them were cached. */
  readonly reachedModel: boolean;
  /** Whether the caller disconnected before all vectors were delivered. The caller pays for those that were. */
  readonly hasDisconnected: boolean;
}

/** Drops the references to the vectors' buffers; do not read the vectors after this. */
export function dropVectors({ outcomes }: Pick<EmbeddingOutcomes, 'outcomes'>): void {
  for (const outcome of outcomes) if ('vector' in outcome) outcome.bufferRef?.drop();
}

const noVector = Buffer.alloc(0);

/** Returns an outcome that is billed but not read. */
export function withoutVector(outcome: InputOutcome): InputOutcome {
  return 'error' in outcome ? outcome : { ...outcome, vector: noVector, bufferRef: null };
}

/** The class of the calls that are made for a task. */
export function callClassOf({ isBackground = false, begin }: EmbeddingTask): CallClass {
  if (isBackground) return 'batch';
  return begin === undefined ? 'interactive' : 'job';
}
