/**
 * Hosted models generate at least this many tokens per second. Slower reasoning is a summary of what was
 * generated.
 */
export const fewestTokensPerSecond = 10;
/** A shorter gap between two deltas leaves a model no time to generate anything hidden. */
export const longestStepMs = 500;

/** What a delta of one choice contained. */
export interface Said {
  readonly isCall: boolean;
  /** Null if it is not reasoning, and therefore everything that was generated for it. */
  readonly reasoningTokens: number | null;
}

/** Measures for how long one choice of a chat may have generated hidden tokens. */
export class ChoiceSilence {
  readonly #hidesAnywhere: boolean;
  /**
   * Whether a tool call has begun. Its arguments may arrive late: Anthropic, for one, buffers them until a
   * value is complete.
   */
  #isCalling = false;
  /** Total silence, up to `#saidAtMs`. */
  #silentMs = 0;
  #saidAtMs: number;
  /** How much of the following silence the last reasoning explains. */
  #explainedMs = 0;
  #isFinished = false;
  #endedAtMs: number | null = null;

  /** @param hidesAnywhere whether it may generate hidden tokens at any time, whatever it sent last */
  constructor(hidesAnywhere: boolean, nowMs: number) {
    this.#hidesAnywhere = hidesAnywhere;
    this.#saidAtMs = nowMs;
  }

  /** Resets the silence, because it is accounted for so far. */
  restart(nowMs: number): void {
    this.#saidAtMs = this.#endedAtMs ?? nowMs;
    this.#silentMs = 0;
  }

  take(nowMs: number, { isCall, reasoningTokens }: Said): void {
    const stepMs = (this.#endedAtMs ?? nowMs) - this.#saidAtMs;
    if (this.#mayHide) this.#silentMs += this.#findSilence(stepMs, reasoningTokens);
    this.#saidAtMs += stepMs;
    this.#isCalling = isCall;
  }

  /** Records that the choice came to its end and generates nothing more. */
  finish(nowMs: number): void {
    this.#endedAtMs ??= nowMs;
    this.#isFinished = true;
  }

  /** Records that the call has ended. */
  end(nowMs: number): void {
    if (!this.#isFinished) this.#endedAtMs = nowMs;
  }

  countMs(nowMs: number): number {
    const sinceMs = this.#mayHide ? (this.#endedAtMs ?? nowMs) - this.#saidAtMs : 0;
    return this.#silentMs + Math.max(0, sinceMs);
  }

  get #mayHide(): boolean {
    return this.#hidesAnywhere || this.#isCalling;
  }

  #findSilence(stepMs: number, reasoningTokens: number | null): number {
    if (stepMs > longestStepMs) return stepMs;
    if (reasoningTokens === null) return 0;
    const explainedMs = this.#explainedMs + (reasoningTokens * 1_000) / fewestTokensPerSecond - stepMs;
    this.#explainedMs = Math.min(longestStepMs, Math.max(0, explainedMs));
    return Math.max(0, -explainedMs);
  }
}
