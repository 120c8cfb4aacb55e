/** Hosted models generate at least so many; reasoning that comes slower is a summary of what was generated. */
export const fewestTokensPerSecond = 10;
/** Between two words that are said a model has no time to generate anything else. */
export const longestStepMs = 500;

/** What one choice said. */
export interface Said {
  readonly isCall: boolean;
  /** Null where it is no reasoning, and so all that was generated for it. */
  readonly reasoningTokens: number | null;
}

/** For how long one choice of a chat may have generated what nobody saw. */
export class ChoiceSilence {
  readonly #hidesAnywhere: boolean;
  /** A tool call has begun. Its arguments may come late: Anthropic, for one, gathers them until a value is whole. */
  #isCalling = false;
  /** In which nothing was said, up to `#saidAtMs`. */
  #silentMs = 0;
  #saidAtMs: number;
  /** For so long the reasoning that was said last explains that nothing follows it. */
  #explainedMs = 0;
  #isFinished = false;
  #endedAtMs: number | null = null;

  /** @param hidesAnywhere whether it may generate what nobody sees at any time, whatever it said last */
  constructor(hidesAnywhere: boolean, nowMs: number) {
    this.#hidesAnywhere = hidesAnywhere;
    this.#saidAtMs = nowMs;
  }

  /** All of the silence so far is accounted for. */
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

  /** It came to its end, and generates nothing more. */
  finish(nowMs: number): void {
    this.#endedAtMs ??= nowMs;
    this.#isFinished = true;
  }

  /** The call is over. */
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
