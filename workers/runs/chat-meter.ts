import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { allowForSearch, maySearch } from '../../shared/catalog/search-allowance.ts';
import { isBounded } from '../../shared/catalog/usage-bounds.ts';
import type { ChatJob } from '../../shared/queue/job-kinds.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ChatEvent, UpstreamUsage } from '../upstreams/upstream.ts';
import { ChatReportFilter, countReserved, mayReason, readMaxTokens } from './chat-report-filter.ts';
import { fewestTokensPerSecond } from './choice-silence.ts';
import { countDelta, isReasoningItself } from './count-delta.ts';
import { UnseenGeneration, type ChoiceDelta } from './unseen-generation.ts';

/**
 * How a vendor call ended. `complete`: it came to its end, whether or not anyone read it. `left`: it was sent,
 * and its caller left before its end. `broken`: it failed, at the vendor or here.
 */
export type CallEnding = 'complete' | 'left' | 'broken';

/** What a chat used, as it is charged. */
export interface MeteredChat {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** As the vendor reported them; parts of the two above. */
  readonly cachedTokens: number | null;
  readonly cacheWriteTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly webSearchTokens: number | null;
  /** Whether some of it is our own count. */
  readonly counted: boolean;
  readonly billedMs: number;
}

/** Counts what a chat uses: as the vendor reports it, or by our own count if it reports nothing. */
export class ChatMeter {
  readonly #job: ChatJob;
  #model: CatalogModel | null = null;
  #route: CatalogRoute | null = null;
  #reports: ChatReportFilter | null = null;
  /** The last report, without implausible counts. */
  #reported: UpstreamUsage | null = null;
  /** The highest count of completion tokens in any report. */
  #mostReported = 0;
  /** Whether the last report covered everything generated until then, and nothing came since. */
  #isCovered = false;
  /** Completion tokens of the last report that covered everything until then. */
  #covered = 0;
  #unseen: UnseenGeneration | null = null;
  #counted = 0;
  /** Like `#counted`, but not capped at the reservation. */
  #seen = 0;
  #showsReasoning = false;
  #calls = 0;
  #startedAtMs = 0;
  #endedAtMs = 0;
  readonly #nowMs: () => number;

  constructor(job: ChatJob, nowMs = () => performance.now()) {
    this.#job = job;
    this.#nowMs = nowMs;
  }

  /** Milliseconds since the call began. */
  get elapsedMs(): number {
    return this.#nowMs() - this.#startedAtMs;
  }

  /** Whether the vendor has reported everything that it generated so far. */
  get isCovered(): boolean {
    return this.#isCovered && this.#unseen?.isPossible !== true;
  }

  /** Whether the requested response may take as long as a call may. If not, a vendor that takes that long hangs. */
  get mayFillTime(): boolean {
    // If the token limit does not cover everything that is generated, even a short response may take that long
    // to reason about.
    if (this.#route === null || !isBounded(this.#route)) return true;
    const seconds = this.#route.upstream.timeoutMs / 1_000;
    return (readMaxTokens(this.#job.body) ?? Infinity) >= seconds * fewestTokensPerSecond;
  }

  /** The best count of completion tokens so far. */
  get completionTokens(): number {
    return Math.max(this.#mostReported, this.#counted);
  }

  /** Starts a call. Discards the counts of an earlier call that failed. */
  start(model: CatalogModel, route: CatalogRoute, log: Logger): void {
    this.#model = model;
    this.#route = route;
    this.#reports = new ChatReportFilter(this.#job, model, route, log);
    this.#reported = null;
    this.#mostReported = 0;
    this.#isCovered = false;
    this.#covered = 0;
    this.#counted = 0;
    this.#seen = 0;
    this.#showsReasoning = false;
    this.#calls = 0;
    this.#unseen = new UnseenGeneration(this.#job, model, route, this.#nowMs);
    this.#startedAtMs = this.#nowMs();
  }

  /** Records that a request was written to the vendor. A search may take several. */
  markSent(): void {
    this.#calls += 1;
    if (this.#calls === 1 || this.#isCovered) this.#unseen?.restart();
    this.#isCovered = false;
  }

  /** Records that one of the choices came to its end. */
  finish(index: number): void {
    this.#unseen?.finish(index);
  }

  end(): void {
    this.#endedAtMs = this.#nowMs();
    this.#unseen?.end();
  }

  /** Records that the vendor went on generating while nobody read it. */
  markUnread(): void {
    this.#isCovered = false;
  }

  takeDelta({ index, delta }: ChoiceDelta): void {
    const tokens = countDelta(delta, this.#model?.tokenizer);
    // Our own count may be wrong, so it never charges for more than was reserved.
    this.#counted = Math.min(countReserved(this.#job, this.#route), this.#counted + tokens);
    this.#seen += tokens;
    this.#showsReasoning ||= isReasoningItself(delta, this.#route);
    this.#unseen?.take({ index, delta }, tokens);
    this.#isCovered = false;
  }

  takeUsage({ usage, isPartial }: Extract<ChatEvent, { type: 'usage' }>): void {
    this.#reported = this.#reports?.take(usage, { tokens: this.#seen, elapsedMs: this.elapsedMs }) ?? usage;
    const { completionTokens } = this.#reported;
    this.#mostReported = Math.max(this.#mostReported, completionTokens ?? 0);
    this.#isCovered = isPartial !== true && completionTokens !== null;
    if (!this.#isCovered) return;
    this.#covered = completionTokens ?? 0;
    this.#unseen?.restart();
  }

  measure(ending: CallEnding): MeteredChat {
    const { cachedTokens, cacheWriteTokens, reasoningTokens, webSearchTokens } = this.#reported ?? nothing;
    const [prompt, completion] = [this.#findPrompt(ending), this.#findCompletion(ending)];
    return {
      promptTokens: prompt ?? this.#countPrompt(ending),
      completionTokens: completion ?? this.#countCompletion(ending),
      cachedTokens,
      cacheWriteTokens,
      reasoningTokens,
      webSearchTokens,
      counted: prompt === null || completion === null,
      billedMs: Math.round(this.#endedAtMs - this.#startedAtMs),
    };
  }

  /** Returns the vendor's report; null if it is unknown. */
  #findPrompt(ending: CallEnding): number | null {
    // No prompt is empty: a zero stands for a count that was to follow.
    const prompt = this.#reported?.promptTokens || null;
    if (ending === 'complete') return prompt;
    // The results of a search are counted only at its end.
    const isFinal = this.isCovered || !this.#maySearch;
    return isFinal ? prompt : null;
  }

  #findCompletion(ending: CallEnding): number | null {
    const reported = this.#reported?.completionTokens ?? null;
    if (reported === null) return null;
    // A report that comes before the response and is never repeated is as good as our own count if it is
    // higher. A response that was seen is not empty.
    const isKnown = ending === 'complete' ? this.#isCovered || reported >= this.#counted : this.isCovered;
    return isKnown && (reported > 0 || this.#seen === 0) ? reported : null;
  }

  #countPrompt(ending: CallEnding): number {
    const { request } = this.#job;
    const known = Math.max(this.#reported?.promptTokens ?? 0, request.promptTokens);
    if (ending !== 'left' || this.#model === null || !this.#maySearch) {
      return this.#reported?.promptTokens || request.promptTokens;
    }
    return Math.max(known, allowForSearch(this.#model, request.promptTokens, this.#calls));
  }

  /**
   * Counts what was seen or reported so far, and no more if the vendor or we failed. A caller who left also
   * pays for what the vendor may have generated unseen: as much as fits the elapsed time, within the
   * reservation. The same applies to hidden reasoning in a complete response without a report.
   */
  #countCompletion(ending: CallEnding): number {
    const known = ending === 'complete' ? this.#counted : this.completionTokens;
    if (!this.#mayMissTokens(ending) || this.#unseen === null) return known;
    const unseen = this.#covered + this.#unseen.countTokens();
    return Math.max(known, Math.min(countReserved(this.#job, this.#route), unseen));
  }

  get #maySearch(): boolean {
    return this.#model !== null && maySearch(this.#job.body, this.#model);
  }

  #mayMissTokens(ending: CallEnding): boolean {
    if (ending !== 'complete') return ending === 'left';
    // A self-hosted server that reports nothing usually streams its reasoning; if none came, it was told not to
    // reason.
    return (
      !this.#showsReasoning &&
      this.#job.body.reasoning_effort !== 'none' &&
      mayReason(this.#job, this.#model!)
    );
  }
}

const nothing = { cachedTokens: null, cacheWriteTokens: null, reasoningTokens: null, webSearchTokens: null };
