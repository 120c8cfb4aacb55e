/**
 * Hosted models generate at least this many tokens per second. Reasoning that arrives more slowly is only a summary of
 * what was generated.
 */
export const minTokensPerSecond = 10;
/** In a gap between two deltas of up to this length, a model has no time to generate anything hidden. */
export const maxStepMs = 500;

/** What a delta of one choice contains. */
export interface DeltaInfo {
  readonly isCall: boolean;
  /** Null if the delta is not reasoning. Such a delta contains everything that was generated for it. */
  readonly reasoningTokens: number | null;
}

/** Measures how long a choice of a chat may have been generating hidden tokens. */
export class ChoiceSilence {
  readonly #mayHideAnytime: boolean;
  /**
   * Whether a tool call has begun. Its arguments may arrive late: Anthropic, for example, buffers them until a value is
   * complete.
   */
  #isCalling = false;
  /** Total silence up to `#lastDeltaAtMs`. */
  #silentMs = 0;
  #lastDeltaAtMs: number;
  /** How much of the following silence the last reasoning explains. */
  #explainedMs = 0;
  #isFinished = false;
  #endedAtMs: number | null = null;

  /** @param mayHideAnytime whether the choice may have hidden tokens at any time, regardless of its last output */
  constructor(mayHideAnytime: boolean, nowMs: number) {
    this.#mayHideAnytime = mayHideAnytime;
    this.#lastDeltaAtMs = nowMs;
  }

  /** Resets the silence, because it is accounted for. */
  restart(nowMs: number): void {
    this.#lastDeltaAtMs = this.#endedAtMs ?? nowMs;
    this.#silentMs = 0;
  }

  take(nowMs: number, { isCall, reasoningTokens }: DeltaInfo): void {
    const stepMs = (this.#endedAtMs ?? nowMs) - this.#lastDeltaAtMs;
    if (this.#mayHide) this.#silentMs += this.#findSilence(stepMs, reasoningTokens);
    this.#lastDeltaAtMs += stepMs;
    this.#isCalling = isCall;
  }

  /** Records that the choice is complete and generates nothing more. */
  finish(nowMs: number): void {
    this.#endedAtMs ??= nowMs;
    this.#isFinished = true;
  }

  /** Records that the call has ended. */
  end(nowMs: number): void {
    if (!this.#isFinished) this.#endedAtMs = nowMs;
  }

  countMs(nowMs: number): number {
    const sinceMs = this.#mayHide ? (this.#endedAtMs ?? nowMs) - this.#lastDeltaAtMs : 0;
    return this.#silentMs + Math.max(0, sinceMs);
  }

  get #mayHide(): boolean {
    return this.#mayHideAnytime || this.#isCalling;
  }

  #findSilence(stepMs: number, reasoningTokens: number | null): number {
    if (stepMs > maxStepMs) return stepMs;
    if (reasoningTokens === null) return 0;
    const explainedMs = this.#explainedMs + (reasoningTokens * 1_000) / minTokensPerSecond - stepMs;
    this.#explainedMs = Math.min(maxStepMs, Math.max(0, explainedMs));
    return Math.max(0, -explainedMs);
  }
}
