import type { Logger } from '../../shared/runtime/logger.ts';
import { shareExactly } from './share-exactly.ts';

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
  /** The vendor reported no tokens: the count is ours. */
  readonly counted: boolean;
  readonly billedMs: number;
}

/** Why an input has no vector. */
export interface FailedInput {
  readonly error: unknown;
}

export type InputOutcome = EmbeddedInput | FailedInput;

/** One request's part of the work. */
export interface EmbeddingAsk {
  readonly accountId: string;
  /** The end user it is for, told to the vendor where a call holds nothing of anybody else. */
  readonly user: string | null;
  readonly inputs: readonly string[];
  /** By our own count. */
  readonly inputTokens: readonly number[];
  readonly signal: AbortSignal;
  readonly deadlineAtMs: number;
  readonly log: Logger;
}

export interface EmbeddingAnswerOfAsk {
  /** One for each input, in order; holds what its vectors lie in until `dropVectors`. */
  readonly outcomes: readonly InputOutcome[];
  /** Whether a model was asked for any of them, or had been asked for all of them before. */
  readonly reachedModel: boolean;
}

/** Its vectors are not read any more. */
export function dropVectors({ outcomes }: EmbeddingAnswerOfAsk): void {
  for (const outcome of outcomes) if ('vector' in outcome) outcome.hold?.drop();
}

/** An ask under way: what it has by now, and whom to tell when it has all. */
export class AskUnderWay {
  readonly ask: EmbeddingAsk;
  readonly answer: Promise<EmbeddingAnswerOfAsk>;
  reachedModel = false;
  readonly #outcomes: (InputOutcome | undefined)[];
  #left: number;
  #isOver = false;
  #resolve!: (answer: EmbeddingAnswerOfAsk) => void;

  constructor(ask: EmbeddingAsk) {
    this.ask = ask;
    this.#left = ask.inputs.length;
    this.#outcomes = ask.inputs.map(() => undefined);
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Places of the inputs that nothing is known of; none where nobody waits any more. */
  findMissing(): number[] {
    const missing: number[] = [];
    if (this.#isOver) return missing;
    for (let i = 0; i < this.#outcomes.length; i++) if (this.#outcomes[i] === undefined) missing.push(i);
    return missing;
  }

  deliver(index: number, outcome: InputOutcome): void {
    if (this.#isOver || this.#outcomes[index] !== undefined) return;
    this.#outcomes[index] = outcome;
    if ('vector' in outcome) outcome.hold?.take();
    this.#left -= 1;
    if (this.#left === 0) this.#end();
  }

  /** Whatever is missing fails with this. */
  fail(error: unknown): void {
    if (this.#isOver) return;
    for (let i = 0; i < this.#outcomes.length; i++) this.#outcomes[i] ??= { error };
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#resolve({ outcomes: this.#outcomes as InputOutcome[], reachedModel: this.reachedModel });
  }
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
  readonly text: string;
  readonly tokens: number;
  readonly #claims: Claim[] = [];
  #isAsked = false;
  #isDelivered = false;

  constructor(accountId: string, text: string, tokens: number) {
    this.accountId = accountId;
    this.text = text;
    this.tokens = tokens;
  }

  claim(ask: AskUnderWay, index: number): void {
    this.#claims.push({ ask, index });
    if (this.#isAsked) ask.reachedModel = true;
  }

  /** Whether anybody still waits for it; of one that was delivered nothing more will come. */
  get isWanted(): boolean {
    if (this.#isDelivered) return false;
    for (const { ask } of this.#claims) if (!ask.isOver) return true;
    return false;
  }

  get claims(): readonly Claim[] {
    return this.#claims;
  }

  /** Who asked for it first. */
  get group(): AskUnderWay | undefined {
    return this.#claims[0]?.ask;
  }

  markAsked(): void {
    this.#isAsked = true;
    for (const { ask } of this.#claims) ask.reachedModel = true;
  }

  /** To whoever shares it the tokens in full, for each asked for them; the vendor's time in parts, for it passed once. */
  deliver(outcome: InputOutcome): void {
    this.#isDelivered = true;
    if ('error' in outcome || this.#claims.length === 1) {
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
