import { AppError } from '../../shared/contract/errors.ts';
import type { QueueEntry } from '../../shared/fairness/fair-queue.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { UpstreamError } from '../upstreams/upstream.ts';
import { shareExactly } from './share-exactly.ts';
import type { Dimensions } from './waiting-inputs.ts';

/**
 * Reference count of the buffer that holds the vectors of one call. The buffer is returned to its pool when the
 * last reference is dropped.
 */
export class BufferRef {
  readonly #release: () => void;
  #holders = 0;

  constructor(release: () => void) {
    this.#release = release;
  }

  take(): void {
    this.#holders += 1;
  }

  drop(): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.#release();
  }
}

/** What a vendor call returned for one of its inputs. A vector from the cache has no billed time. */
export interface EmbeddedInput {
  /** Read it only while holding a reference. */
  readonly vector: Buffer;
  /** Null if the vector has its own memory. */
  readonly hold: BufferRef | null;
  readonly dimensions: number;
  readonly tokens: number;
  /** Whether the count is ours: the vendor reported no tokens, or a sum that says nothing about this input. */
  readonly counted: boolean;
  readonly billedMs: number;
}

/** Why an input has no vector. */
export interface FailedInput {
  readonly error: unknown;
}

export type InputOutcome = EmbeddedInput | FailedInput;

/** Whether a vendor rejected what it was sent. Only the sender of the bad input is at fault. */
export function isRefusal(error: unknown): boolean {
  const cause = error instanceof AppError ? error.cause : null;
  return cause instanceof UpstreamError && (cause.failure === 'rejected' || cause.failure === 'too_large');
}

/** One request's part of the work. */
export interface EmbeddingTask {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  /**
   * Call time cannot be attributed to single accounts, so a call paid by time holds only inputs of its own
   * account.
   */
  readonly isPaidByTime: boolean;
  /** The end user, passed to the vendor if a call holds no other request's inputs. */
  readonly user: string | null;
  readonly inputs: readonly string[];
  /** By our own count. */
  readonly inputTokens: readonly number[];
  /** Aborted when its caller leaves, or when it must end at once. */
  readonly signal: AbortSignal;
  /** Aborted before `signal` when it must end at once, even if a model was called. */
  readonly stopSignal: AbortSignal;
  /**
   * Aborted when the process is about to exit. A request whose caller has left is then settled with the vectors
   * it has.
   */
  readonly stopping?: AbortSignal;
  readonly deadlineAtMs: number;
  readonly log: Logger;
  /** For durable jobs: awaited before a model is called. If it rejects, the signal is aborted. */
  readonly begin?: () => Promise<void>;
  /** For durable jobs: the share of its inputs that are done, from 0 to 1. */
  readonly progress?: (done: number) => void;
}

export interface EmbeddingOutcomes {
  /** One for each input, in order. Holds references to the vectors' buffers until `dropVectors`. */
  readonly outcomes: readonly InputOutcome[];
  /** Whether a model was called for any of the inputs, or all of them came from the cache. */
  readonly reachedModel: boolean;
  /** Whether its caller left before all vectors were there. The caller pays for those that were. */
  readonly hasLeft: boolean;
}

/** Drops the references to the vectors; they are not read any more. */
export function dropVectors({ outcomes }: EmbeddingOutcomes): void {
  for (const outcome of outcomes) if ('vector' in outcome) outcome.hold?.drop();
}

/** A request in progress: the outcomes so far, and the promise that resolves with all of them. */
export class PendingRequest {
  readonly task: EmbeddingTask;
  readonly answer: Promise<EmbeddingOutcomes>;
  /** Resolves when nobody waits for the response any more: it is complete, or its caller has left. */
  readonly whenUnawaited: Promise<void>;
  reachedModel = false;
  readonly #outcomes: (InputOutcome | undefined)[];
  readonly #inputs: (PendingInput | undefined)[];
  #left: number;
  #isOver = false;
  #hasLeft = false;
  #resolve!: (answer: EmbeddingOutcomes) => void;
  #endWait!: () => void;

  constructor(task: EmbeddingTask) {
    this.task = task;
    this.#left = task.inputs.length;
    this.#outcomes = task.inputs.map(() => undefined);
    this.#inputs = task.inputs.map(() => undefined);
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.whenUnawaited = new Promise((resolve) => {
      this.#endWait = resolve;
    });
  }

  /**
   * Whether its caller still waits. If the caller has left, calls in progress are still recorded, but nothing
   * new is started.
   */
  get isAwaited(): boolean {
    return !this.#isOver && !this.#hasLeft;
  }

  /** Whether its caller still waits for this input. Inputs that failed are not called again. */
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

  noteInput(index: number, input: PendingInput): void {
    this.#inputs[index] = input;
  }

  deliver(index: number, outcome: InputOutcome): void {
    if (this.#isOver || this.#outcomes[index] !== undefined) return;
    if (!this.#hasLeft && 'vector' in outcome) outcome.hold?.take();
    this.#outcomes[index] = this.#hasLeft ? dropVector(outcome) : outcome;
    this.#left -= 1;
    if (this.#left === 0) this.#end();
    else this.task.progress?.(1 - this.#left / this.task.inputs.length);
  }

  /**
   * Records that the caller has left. A model call in progress goes on and is paid for. So is a cached vector
   * that was delivered, which counts as if a model had been called for it. The vectors themselves are dropped.
   * @returns the inputs that it gives up
   */
  leave(reason: unknown): ReadonlySet<PendingInput> {
    if (!this.isAwaited) return new Set();
    this.#hasLeft = true;
    this.#endWait();
    for (const [i, outcome] of this.#outcomes.entries()) {
      if (outcome === undefined || 'error' in outcome) continue;
      this.reachedModel = true;
      this.#outcomes[i] = dropVector(outcome);
      outcome.hold?.drop();
    }
    return this.withdraw(reason);
  }

  /**
   * Fails all missing inputs with this error.
   * @returns the inputs that it gives up
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
    for (let i = 0; i < this.#outcomes.length && !this.#isOver; i++) {
      const input = this.#inputs[i];
      if (this.#outcomes[i] !== undefined || input?.isAsked === true) continue;
      if (input !== undefined) inputs.add(input);
      this.deliver(i, { error });
    }
    return inputs;
  }

  #end(): void {
    this.#isOver = true;
    this.#endWait();
    this.#resolve({
      outcomes: this.#outcomes as InputOutcome[],
      reachedModel: this.reachedModel,
      hasLeft: this.#hasLeft,
    });
  }
}

const noVector = Buffer.alloc(0);

/** Removes the vector from an outcome that is paid for but not read. */
function dropVector(outcome: InputOutcome): InputOutcome {
  return 'error' in outcome ? outcome : { ...outcome, vector: noVector, hold: null };
}

/** Where an input's outcome is wanted. */
export interface InputClaim {
  readonly request: PendingRequest;
  readonly index: number;
}

/**
 * An input that waits for its turn at the vendor, or is there. Requests of one account for the same text share
 * it.
 */
export class PendingInput {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  readonly sharesCalls: boolean;
  readonly text: string;
  readonly tokens: number;
  /** The request that it came with. */
  readonly group: PendingRequest;
  /** Its entry in the wait queue. */
  entry: QueueEntry<PendingInput> | null = null;
  #claims: InputClaim[] = [];
  #isAsked = false;
  #isDelivered = false;

  /** @param group the first request that claims it */
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
    request.noteInput(index, this);
    if (this.#isAsked) request.reachedModel = true;
  }

  /** Whether anyone still waits for it. False once it is delivered, because nothing more will come. */
  get isWanted(): boolean {
    return !this.#isDelivered && this.#claims.some(({ request, index }) => request.isWaitingFor(index));
  }

  get claims(): readonly InputClaim[] {
    return this.#claims;
  }

  get isAsked(): boolean {
    return this.#isAsked;
  }

  markAsked(): void {
    this.#isAsked = true;
    for (const { request } of this.#claims) request.reachedModel = true;
  }

  /** Fails the claims of callers who have left: nothing is retried on their behalf, and the earlier call failed. */
  failLeft(error: unknown): void {
    if (this.#claims.every(({ request }) => request.isAwaited)) return;
    const left = this.#claims.filter(({ request }) => !request.isAwaited);
    this.#claims = this.#claims.filter(({ request }) => request.isAwaited);
    for (const { request, index } of left) request.deliver(index, { error });
  }

  /**
   * Delivers the outcome to all claims. Each pays the tokens in full, because each requested them. They split
   * the vendor's time, because it passed once.
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
