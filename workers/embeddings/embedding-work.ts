import { AppError } from '../../shared/contract/errors.ts';
import type { QueueEntry } from '../../shared/fairness/fair-queue.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { UpstreamError } from '../upstreams/upstream.ts';
import { shareExactly } from './share-exactly.ts';
import type { Dimensions } from './waiting-inputs.ts';

/** Counts who needs the vectors of one call. When the last of them does not any more, their buffer is given back. */
export class VectorHold {
  readonly #giveBack: () => void;
  #holders = 0;

  constructor(giveBack: () => void) {
    this.#giveBack = giveBack;
  }

  take(): void {
    this.#holders += 1;
  }

  drop(): void {
    this.#holders -= 1;
    if (this.#holders === 0) this.#giveBack();
  }
}

/** What one vendor call brought one of its inputs; where it is known of an earlier call, no time passed. */
export interface EmbeddedInput {
  /** To be read while its hold is held. */
  readonly vector: Buffer;
  /** Null where the vector is in memory of its own. */
  readonly hold: VectorHold | null;
  readonly dimensions: number;
  readonly tokens: number;
  /** The count is ours: the vendor reported no tokens, or a sum that tells nothing of this input. */
  readonly counted: boolean;
  readonly billedMs: number;
}

/** Why an input has no vector. */
export interface FailedInput {
  readonly error: unknown;
}

export type InputOutcome = EmbeddedInput | FailedInput;

/** Whether a vendor refused what it was sent: the fault of an input, and of nobody who did not send it. */
export function isRefusal(error: unknown): boolean {
  const cause = error instanceof AppError ? error.cause : null;
  return cause instanceof UpstreamError && (cause.failure === 'rejected' || cause.failure === 'too_large');
}

/** One request's part of the work. */
export interface EmbeddingAsk {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  /** A call's time is nobody's in particular, so its calls hold inputs of its own account alone. */
  readonly isPaidByTime: boolean;
  /** The end user it is for, told to the vendor where a call holds nothing of anybody else. */
  readonly user: string | null;
  readonly inputs: readonly string[];
  /** By our own count. */
  readonly inputTokens: readonly number[];
  /** Aborted when its caller leaves, or it must end at once. */
  readonly signal: AbortSignal;
  /** Aborted before `signal` when it must end at once, whatever a model was asked for. */
  readonly stopSignal: AbortSignal;
  /** Aborted when the process is about to end: one that has left is then settled by what it has. */
  readonly stopping?: AbortSignal;
  readonly deadlineAtMs: number;
  readonly log: Logger;
  /** Of a durable job: waited for before a model is asked for it. Where it rejects, the signal is aborted. */
  readonly begin?: () => Promise<void>;
  /** Of a durable job: how many of its inputs are done, from 0 to 1. */
  readonly progress?: (done: number) => void;
}

export interface EmbeddingAnswerOfAsk {
  /** One for each input, in order; holds what its vectors lie in until `dropVectors`. */
  readonly outcomes: readonly InputOutcome[];
  /** Whether a model was asked for any of them, or had been asked for all of them before. */
  readonly reachedModel: boolean;
  /** Whether its caller left before it had all of them: it pays for those that it has. */
  readonly hasLeft: boolean;
}

/** Its vectors are not read any more. */
export function dropVectors({ outcomes }: EmbeddingAnswerOfAsk): void {
  for (const outcome of outcomes) if ('vector' in outcome) outcome.hold?.drop();
}

/** An ask under way: what it has by now, and whom to tell when it has all. */
export class AskUnderWay {
  readonly ask: EmbeddingAsk;
  readonly answer: Promise<EmbeddingAnswerOfAsk>;
  /** Resolves when nobody waits for the answer any more: it is there, or its caller has left. */
  readonly whenUnawaited: Promise<void>;
  reachedModel = false;
  readonly #outcomes: (InputOutcome | undefined)[];
  readonly #units: (WorkUnit | undefined)[];
  #left: number;
  #isOver = false;
  #hasLeft = false;
  #resolve!: (answer: EmbeddingAnswerOfAsk) => void;
  #endWait!: () => void;

  constructor(ask: EmbeddingAsk) {
    this.ask = ask;
    this.#left = ask.inputs.length;
    this.#outcomes = ask.inputs.map(() => undefined);
    this.#units = ask.inputs.map(() => undefined);
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.whenUnawaited = new Promise((resolve) => {
      this.#endWait = resolve;
    });
  }

  /** Whether its caller still waits. One that has left is told of what it was asked for, and nothing is begun for it. */
  get isAwaited(): boolean {
    return !this.#isOver && !this.#hasLeft;
  }

  /** Whether its caller waits for this input: one that failed already is asked for no more. */
  isWaitingFor(index: number): boolean {
    return this.isAwaited && this.#outcomes[index] === undefined;
  }

  /** Places of the inputs that nothing is known of; none where nobody waits any more. */
  findMissing(): number[] {
    const missing: number[] = [];
    if (!this.isAwaited) return missing;
    for (let i = 0; i < this.#outcomes.length; i++) if (this.#outcomes[i] === undefined) missing.push(i);
    return missing;
  }

  noteUnit(index: number, unit: WorkUnit): void {
    this.#units[index] = unit;
  }

  deliver(index: number, outcome: InputOutcome): void {
    if (this.#isOver || this.#outcomes[index] !== undefined) return;
    if (!this.#hasLeft && 'vector' in outcome) outcome.hold?.take();
    this.#outcomes[index] = this.#hasLeft ? dropVector(outcome) : outcome;
    this.#left -= 1;
    if (this.#left === 0) this.#end();
    else this.ask.progress?.(1 - this.#left / this.ask.inputs.length);
  }

  /**
   * Its caller has left. A model that was asked goes on and is paid for, and so is a vector that was kept, which counts as
   * if a model had been asked for it. The vectors themselves are dropped.
   * @returns the units that it gives up
   */
  leave(reason: unknown): ReadonlySet<WorkUnit> {
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
   * Whatever is missing fails with this.
   * @returns the units that it gives up
   */
  fail(error: unknown): ReadonlySet<WorkUnit> {
    const units = this.withdraw(error);
    for (let i = 0; i < this.#outcomes.length; i++) this.deliver(i, { error });
    return units;
  }

  /**
   * Inputs that no model was asked for fail with this.
   * @returns their units
   */
  withdraw(error: unknown): ReadonlySet<WorkUnit> {
    const units = new Set<WorkUnit>();
    for (let i = 0; i < this.#outcomes.length && !this.#isOver; i++) {
      const unit = this.#units[i];
      if (this.#outcomes[i] !== undefined || unit?.isAsked === true) continue;
      if (unit !== undefined) units.add(unit);
      this.deliver(i, { error });
    }
    return units;
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

/** What is left of an outcome that is paid for and read by nobody. */
function dropVector(outcome: InputOutcome): InputOutcome {
  return 'error' in outcome ? outcome : { ...outcome, vector: noVector, hold: null };
}

/** Where an input's outcome is wanted. */
export interface Claim {
  readonly ask: AskUnderWay;
  readonly index: number;
}

/**
 * An input as it waits for its turn at the vendor, or is there. Requests of one account that ask for the same text
 * meanwhile share it.
 */
export class WorkUnit {
  readonly accountId: string;
  readonly dimensions: Dimensions;
  readonly sharesCalls: boolean;
  readonly text: string;
  readonly tokens: number;
  /** The request that it came with. */
  readonly group: AskUnderWay;
  /** Its place among those that wait. */
  entry: QueueEntry<WorkUnit> | null = null;
  #claims: Claim[] = [];
  #isAsked = false;
  #isDelivered = false;

  /** @param group the first request that claims it */
  constructor(group: AskUnderWay, text: string, tokens: number) {
    this.group = group;
    this.accountId = group.ask.accountId;
    this.dimensions = group.ask.dimensions;
    this.sharesCalls = !group.ask.isPaidByTime;
    this.text = text;
    this.tokens = tokens;
  }

  claim(ask: AskUnderWay, index: number): void {
    this.#claims.push({ ask, index });
    ask.noteUnit(index, this);
    if (this.#isAsked) ask.reachedModel = true;
  }

  /** Whether anybody still waits for it; of one that was delivered nothing more will come. */
  get isWanted(): boolean {
    return !this.#isDelivered && this.#claims.some(({ ask, index }) => ask.isWaitingFor(index));
  }

  get claims(): readonly Claim[] {
    return this.#claims;
  }

  get isAsked(): boolean {
    return this.#isAsked;
  }

  markAsked(): void {
    this.#isAsked = true;
    for (const { ask } of this.#claims) ask.reachedModel = true;
  }

  /** Nothing is asked for on behalf of callers who have left: what was asked for them before has failed. */
  failLeft(error: unknown): void {
    if (this.#claims.every(({ ask }) => ask.isAwaited)) return;
    const left = this.#claims.filter(({ ask }) => !ask.isAwaited);
    this.#claims = this.#claims.filter(({ ask }) => ask.isAwaited);
    for (const { ask, index } of left) ask.deliver(index, { error });
  }

  /** To whoever shares it the tokens in full, for each asked for them; the vendor's time in parts, for it passed once. */
  deliver(outcome: EmbeddedInput): void {
    this.#isDelivered = true;
    if (this.#claims.length === 1) {
      for (const { ask, index } of this.#claims) ask.deliver(index, outcome);
      return;
    }
    const times = shareExactly(
      outcome.billedMs,
      this.#claims.map(() => 1),
    );
    for (const [i, { ask, index }] of this.#claims.entries()) {
      ask.deliver(index, { ...outcome, billedMs: times[i]! });
    }
  }

  /** To whoever shares it an error of their own. */
  fail(describe: (claim: Claim) => unknown): void {
    this.#isDelivered = true;
    for (const claim of this.#claims) claim.ask.deliver(claim.index, { error: describe(claim) });
  }
}
