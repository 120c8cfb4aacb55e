import type { QueueEntry } from '../../shared/fairness/fair-queue.ts';
import type { CallClass } from '../../shared/work/queue/call-class.ts';
import {
  callClassOf,
  withoutVector,
  type EmbeddedInput,
  type EmbeddingOutcomes,
  type EmbeddingTask,
  type FinishedLine,
  type InputOutcome,
} from './embedding-task.ts';
import { shareCost } from '../routing/vendor-cost.ts';
import { shareExactly } from './share-exactly.ts';
import { TaskLines } from './task-lines.ts';
import type { Dimensions } from './waiting-inputs.ts';

/** A request in progress: the outcomes so far, and the promise that resolves with all of them. */
export class PendingRequest {
  readonly task: EmbeddingTask;
  readonly callClass: CallClass;
  /**
   * Requests with the same key share inputs with the same text. Those of different classes do not: an input waits with
   * its own class.
   */
  readonly sharingKey: string;
  readonly answer: Promise<EmbeddingOutcomes>;
  /** Resolves when nobody waits for the response any more: it is complete, or the caller has disconnected. */
  readonly whenNobodyWaits: Promise<void>;
  reachedModel = false;
  /** According to `performance.now`. */
  readonly createdAtMs = performance.now();
  readonly #outcomes: (InputOutcome | undefined)[];
  readonly #inputs: (PendingInput | undefined)[];
  readonly #lines: TaskLines;
  /** Per line, how many of its inputs have no outcome yet. Only for `onLines`. */
  readonly #remainingOfLine: Int32Array | null;
  /** Lines that have ended and that `onLines` has not got yet. */
  #finishedLines: number[] = [];
  #remaining: number;
  #isDone = false;
  #hasDisconnected = false;
  #resolve!: (outcomes: EmbeddingOutcomes) => void;
  #endWait!: () => void;

  constructor(task: EmbeddingTask) {
    this.task = task;
    const { accountId, dimensions, isPaidByTime } = task;
    this.callClass = callClassOf(task);
    this.sharingKey = `${this.callClass}\n${dimensions}\n${isPaidByTime}\n${accountId}`;
    this.#lines = new TaskLines(task.lines, task.inputs.length);
    this.#remainingOfLine = task.onLines === undefined ? null : this.#lines.countInputs();
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

  /** Identifies the line of an input within this request. */
  lineOf(index: number): number {
    return this.#lines.indexOf(index);
  }

  /** Returns the position of an input in its line, and how many inputs the line has. */
  locate(index: number): { readonly position: number; readonly count: number } {
    const { start, end } = this.#lines.rangeOf(this.#lines.indexOf(index));
    return { position: index - start, count: end - start };
  }

  trackInput(index: number, input: PendingInput): void {
    this.#inputs[index] = input;
  }

  deliver(index: number, outcome: InputOutcome): void {
    if (this.#isDone || this.#outcomes[index] !== undefined) return;
    if (this.#isRead && 'vector' in outcome) outcome.bufferRef?.take();
    this.#outcomes[index] = this.#isRead ? outcome : withoutVector(outcome);
    this.#remaining -= 1;
    if (this.#remainingOfLine !== null) this.#countDown(this.#remainingOfLine, this.#lines.indexOf(index));
    if (this.#remaining === 0) this.#end();
    else this.task.progress?.(1 - this.#remaining / this.task.inputs.length);
  }

  /**
   * Records that the caller has disconnected. A running model call is completed and billed. A cached vector that
   * was delivered is billed as well, as if a model had been called for it. The vectors themselves are dropped, unless
   * `onLines` gets them.
   * @returns the inputs that the request no longer waits for
   */
  leave(reason: unknown): ReadonlySet<PendingInput> {
    if (!this.isAwaited) return new Set();
    this.#hasDisconnected = true;
    this.#endWait();
    for (const [i, outcome] of this.#outcomes.entries()) {
      if (outcome === undefined || 'error' in outcome) continue;
      this.reachedModel = true;
      // `onLines` still gets the vector.
      if (this.#isRead) continue;
      this.#outcomes[i] = withoutVector(outcome);
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
    return this.#withdraw(0, this.#outcomes.length, error);
  }

  /**
   * Fails the inputs of this input's line that no model was called for.
   * @returns those inputs
   */
  withdrawLine(index: number, error: unknown): ReadonlySet<PendingInput> {
    const { start, end } = this.#lines.rangeOf(this.#lines.indexOf(index));
    return this.#withdraw(start, end, error);
  }

  /**
   * Fails the lines that no model was called for.
   * @returns their inputs
   */
  expire(error: unknown): ReadonlySet<PendingInput> {
    const expired = new Set<PendingInput>();
    for (let line = 0; line < this.#lines.count; line++) {
      const { start, end } = this.#lines.rangeOf(line);
      if (this.#isSent(start, end)) continue;
      for (const input of this.#withdraw(start, end, error)) expired.add(input);
    }
    return expired;
  }

  /** Whether somebody reads the vectors that are delivered from now on. */
  get #isRead(): boolean {
    return !this.#hasDisconnected || this.#remainingOfLine !== null;
  }

  #isSent(start: number, end: number): boolean {
    for (let i = start; i < end; i++) if (this.#inputs[i]?.isSent === true) return true;
    return false;
  }

  #withdraw(start: number, end: number, error: unknown): ReadonlySet<PendingInput> {
    const inputs = new Set<PendingInput>();
    for (let i = start; i < end && !this.#isDone; i++) {
      const input = this.#inputs[i];
      if (this.#outcomes[i] !== undefined || input?.isSent === true) continue;
      if (input !== undefined) inputs.add(input);
      this.deliver(i, { error });
    }
    return inputs;
  }

  #countDown(remainingOfLine: Int32Array, line: number): void {
    remainingOfLine[line]! -= 1;
    if (remainingOfLine[line]! > 0) return;
    this.#finishedLines.push(line);
    // All lines that end in the same call are handed over together.
    if (this.#finishedLines.length === 1) queueMicrotask(() => this.#handOver());
  }

  /** Passes the lines that have ended to `onLines`. */
  #handOver(): void {
    if (this.#finishedLines.length === 0) return;
    const lines = this.#finishedLines.map((line) => this.#takeLine(line));
    this.#finishedLines = [];
    this.task.onLines?.(lines);
  }

  #takeLine(line: number): FinishedLine {
    const { start, end } = this.#lines.rangeOf(line);
    const outcomes = this.#outcomes.slice(start, end) as InputOutcome[];
    const reachedModel = this.#isSent(start, end) || outcomes.every((outcome) => 'vector' in outcome);
    for (let i = start; i < end; i++) this.#outcomes[i] = handedOver;
    return { line: this.task.lines?.[start] ?? 0, outcomes, reachedModel };
  }

  #end(): void {
    this.#isDone = true;
    this.#endWait();
    this.#handOver();
    this.#resolve({
      outcomes: this.#remainingOfLine === null ? (this.#outcomes as InputOutcome[]) : [],
      reachedModel: this.reachedModel,
      hasDisconnected: this.#hasDisconnected,
    });
  }
}

/** Marks an input whose outcome `onLines` got. */
const handedOver: InputOutcome = { error: null };

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
  readonly callClass: CallClass;
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
    this.callClass = group.callClass;
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
   * and cost are split among the claims, because they were spent only once.
   */
  deliver(outcome: EmbeddedInput): void {
    this.#isDelivered = true;
    if (this.#claims.length === 1) {
      for (const { request, index } of this.#claims) request.deliver(index, outcome);
      return;
    }
    const equally = this.#claims.map(() => 1);
    const times = shareExactly(outcome.billedMs, equally);
    const costs = outcome.vendorCostNano === null ? null : shareCost(outcome.vendorCostNano, equally);
    for (const [i, { request, index }] of this.#claims.entries()) {
      const shares = { billedMs: times[i]!, vendorCostNano: costs === null ? null : costs[i]! };
      request.deliver(index, { ...outcome, ...shares });
    }
  }

  /** Fails all claims, each with its own error. */
  fail(describe: (claim: InputClaim) => unknown): void {
    this.#isDelivered = true;
    for (const claim of this.#claims) claim.request.deliver(claim.index, { error: describe(claim) });
  }
}
