import { AppError } from '../../shared/contract/errors.ts';
import type { QueueEntry } from '../../shared/fairness/fair-queue.ts';
import type { Logger } from '../../shared/platform/runtime/logger.ts';
import { isServerError } from '../routing/retry-policy.ts';
import { UpstreamError } from '../upstreams/upstream.ts';
import { shareExactly } from './share-exactly.ts';
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

/** The embedding work of one request. */
export interface EmbeddingTask {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  /**
   * Call time cannot be attributed to single accounts, so a call billed by time contains only inputs of one
   * account.
   */
  readonly isPaidByTime: boolean;
  /** The end user, passed to the vendor if a call contains no other request's inputs. */
  readonly user: string | null;
  readonly inputs: readonly string[];
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
  /** For durable jobs: awaited before a model is called. If it rejects, the signal is aborted. */
  readonly begin?: () => Promise<void>;
  /** For durable jobs: called with the fraction of the inputs that are done, from 0 to 1. */
  readonly progress?: (done: number) => void;
}

export interface EmbeddingOutcomes {
  /** One per input, in order. They reference the vectors' buffers until `dropVectors` is called. */
  readonly outcomes: readonly InputOutcome[];
  /** Whether a model was called for any of the inputs, or all of them were cached. */
  readonly reachedModel: boolean;
  /** Whether the caller disconnected before all vectors were delivered. The caller pays for those that were. */
  readonly hasDisconnected: boolean;
}

/** Drops the references to the vectors' buffers; do not read the vectors after this. */
export function dropVectors({ outcomes }: EmbeddingOutcomes): void {
  for (const outcome of outcomes) if ('vector' in outcome) outcome.bufferRef?.drop();
}

/** A request in progress: the outcomes so far, and the promise that resolves with all of them. */
export class PendingRequest {
  readonly task: EmbeddingTask;
  readonly answer: Promise<EmbeddingOutcomes>;
  /** Resolves when nobody waits for the response any more: it is complete, or the caller has disconnected. */
  readonly whenNobodyWaits: Promise<void>;
  reachedModel = false;
  readonly #outcomes: (InputOutcome | undefined)[];
  readonly #inputs: (PendingInput | undefined)[];
  #remaining: number;
  #isDone = false;
  #hasDisconnected = false;
  #resolve!: (outcomes: EmbeddingOutcomes) => void;
  #endWait!: () => void;

  constructor(task: EmbeddingTask) {
    this.task = task;
    this.#remaining = task.inputs.length;
    this.#outcomes = task.inputs.map(() => undefined);
    this.#inputs = task.inputs.map(() => undefined);
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.whenNobodyWaits = new Promise((resolve) => {
      this.#endWait = resolve;
    });
  }

  /**
   * Whether the caller still waits. After a disconnect, results of running calls are still recorded, but no new
   * call is started.
   */
  get isAwaited(): boolean {
    return !this.#isDone && !this.#hasDisconnected;
  }

  /** Whether the caller still waits for this input. Inputs that failed are not retried. */
  isWaitingFor(index: number): boolean {
    return this.isAwaited && this.#outcomes[index] === undefined;
  }

  /** Indices of the inputs without an outcome; empty if nobody waits any more. */
  findMissing(): number[] {
    const missing: number[] = [];
    if (!this.isAwaited) return missing;
    for (let i = 0; i < this.#outcomes.length; i++) if (this.#outcomes[i] === undefined) missing.push(i);
    return missing;
  }

  trackInput(index: number, input: PendingInput): void {
    this.#inputs[index] = input;
  }

  deliver(index: number, outcome: InputOutcome): void {
    if (this.#isDone || this.#outcomes[index] !== undefined) return;
    if (!this.#hasDisconnected && 'vector' in outcome) outcome.bufferRef?.take();
    this.#outcomes[index] = this.#hasDisconnected ? dropVector(outcome) : outcome;
    this.#remaining -= 1;
    if (this.#remaining === 0) this.#end();
    else this.task.progress?.(1 - this.#remaining / this.task.inputs.length);
  }

  /**
   * Records that the caller has disconnected. A running model call is completed and billed. A cached vector that
   * was delivered is billed as well, as if a model had been called for it. The vectors themselves are dropped.
   * @returns the inputs that the request no longer waits for
   */
  leave(reason: unknown): ReadonlySet<PendingInput> {
    if (!this.isAwaited) return new Set();
    this.#hasDisconnected = true;
    this.#endWait();
    for (const [i, outcome] of this.#outcomes.entries()) {
      if (outcome === undefined || 'error' in outcome) continue;
      this.reachedModel = true;
      this.#outcomes[i] = dropVector(outcome);
      outcome.bufferRef?.drop();
    }
    return this.withdraw(reason);
  }

  /**
   * Fails all missing inputs with this error.
   * @returns the inputs that the request no longer waits for
   */
  fail(error: unknown): ReadonlySet<PendingInput> {
    const inputs = this.withdraw(error);
    for (let i = 0; i < this.#outcomes.length; i++) this.deliver(i, { error });
    return inputs;
  }

  /**
   * Fails the inputs that no model was called for with this error.
   * @returns those inputs
   */
  withdraw(error: unknown): ReadonlySet<PendingInput> {
    const inputs = new Set<PendingInput>();
    for (let i = 0; i < this.#outcomes.length && !this.#isDone; i++) {
      const input = this.#inputs[i];
      if (this.#outcomes[i] !== undefined || input?.isSent === true) continue;
      if (input !== undefined) inputs.add(input);
      this.deliver(i, { error });
    }
    return inputs;
  }

  #end(): void {
    this.#isDone = true;
    this.#endWait();
    this.#resolve({
      outcomes: this.#outcomes as InputOutcome[],
      reachedModel: this.reachedModel,
      hasDisconnected: this.#hasDisconnected,
    });
  }
}

const noVector = Buffer.alloc(0);

/** Removes the vector from an outcome that is billed but not read. */
function dropVector(outcome: InputOutcome): InputOutcome {
  return 'error' in outcome ? outcome : { ...outcome, vector: noVector, bufferRef: null };
}

/** A request that waits for an input, and the index of the input in that request. */
export interface InputClaim {
  readonly request: PendingRequest;
  readonly index: number;
}

/**
 * An input that waits for a call or is part of one. Requests of one account for the same text share it.
 */
export class PendingInput {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  readonly sharesCalls: boolean;
  readonly text: string;
  readonly tokens: number;
  /** The request that claimed it first. */
  readonly group: PendingRequest;
  /** Its entry in the wait queue. */
  entry: QueueEntry<PendingInput> | null = null;
  #claims: InputClaim[] = [];
  #isSent = false;
  #isDelivered = false;

  /** @param group the request that claims it first */
  constructor(group: PendingRequest, text: string, tokens: number) {
    this.group = group;
    this.accountId = group.task.accountId;
    this.dimensions = group.task.dimensions;
    this.sharesCalls = !group.task.isPaidByTime;
    this.text = text;
    this.tokens = tokens;
  }

  claim(request: PendingRequest, index: number): void {
    this.#claims.push({ request, index });
    request.trackInput(index, this);
    if (this.#isSent) request.reachedModel = true;
  }

  /** Whether any request still waits for it. False once it is delivered. */
  get isNeeded(): boolean {
    return !this.#isDelivered && this.#claims.some(({ request, index }) => request.isWaitingFor(index));
  }

  get claims(): readonly InputClaim[] {
    return this.#claims;
  }

  get isSent(): boolean {
    return this.#isSent;
  }

  markSent(): void {
    this.#isSent = true;
    for (const { request } of this.#claims) request.reachedModel = true;
  }

  /** Fails the claims of callers that have disconnected, because a failed call is not retried for them. */
  failDisconnected(error: unknown): void {
    if (this.#claims.every(({ request }) => request.isAwaited)) return;
    const abandoned = this.#claims.filter(({ request }) => !request.isAwaited);
    this.#claims = this.#claims.filter(({ request }) => request.isAwaited);
    for (const { request, index } of abandoned) request.deliver(index, { error });
  }

  /**
   * Delivers the outcome to all claims. Each claim is billed all tokens, because each requested them. The vendor's time
   * is split among the claims, because it was spent only once.
   */
  deliver(outcome: EmbeddedInput): void {
    this.#isDelivered = true;
    if (this.#claims.length === 1) {
      for (const { request, index } of this.#claims) request.deliver(index, outcome);
      return;
    }
    const times = shareExactly(
      outcome.billedMs,
      this.#claims.map(() => 1),
    );
    for (const [i, { request, index }] of this.#claims.entries()) {
      request.deliver(index, { ...outcome, billedMs: times[i]! });
    }
  }

  /** Fails all claims, each with its own error. */
  fail(describe: (claim: InputClaim) => unknown): void {
    this.#isDelivered = true;
    for (const claim of this.#claims) claim.request.deliver(claim.index, { error: describe(claim) });
  }
}
