import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { allowForSearch, maySearch } from '../../shared/pricing/search-allowance.ts';
import { isBounded } from '../../shared/pricing/usage-bounds.ts';
import type { ChatJob } from '../../shared/queue/job-kinds.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { ChatEvent, UpstreamUsage } from '../upstreams/upstream.ts';
import { ChatReportFilter, countReserved, mayReason, readMaxTokens } from './chat-report-filter.ts';
import { fewestTokensPerSecond } from './choice-silence.ts';
import { countDelta, isReasoningItself } from './count-delta.ts';
import { UnseenGeneration, type ChoiceDelta } from './unseen-generation.ts';

/**
 * How a call of a vendor ended. `complete`: it came to its end, whoever read it. `left`: it was sent, and its caller left
 * before its end. `broken`: it failed, at the vendor or here.
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

/** Counts what a chat uses: as the vendor reports it, and by our own count where it does not. */
export class ChatMeter {
  readonly #job: ChatJob;
  #model: CatalogModel | null = null;
  #route: CatalogRoute | null = null;
  #reports: ChatReportFilter | null = null;
  /** The last report, without counts that cannot be. */
  #reported: UpstreamUsage | null = null;
  /** The highest count of completion tokens of all reports. */
  #mostReported = 0;
  /** Whether the last report held everything generated until then, and nothing was seen since. */
  #isCovered = false;
  /** Completion tokens of the last report that held everything until then. */
  #covered = 0;
  #unseen: UnseenGeneration | null = null;
  #counted = 0;
  /** As `#counted`, beyond what was reserved as well. */
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

  /** Since the call began. */
  get elapsedMs(): number {
    return this.#nowMs() - this.#startedAtMs;
  }

  /** Whether the vendor has reported everything that it generated so far. */
  get isCovered(): boolean {
    return this.#isCovered && this.#unseen?.isPossible !== true;
  }

  /** Whether the answer that was asked for may take as long as a call may. A vendor that takes so long for less hangs. */
  get mayFillTime(): boolean {
    // Where the bound does not hold for all that is generated, a short answer may be thought about for as long.
    if (this.#route === null || !isBounded(this.#route)) return true;
    const seconds = this.#route.upstream.timeoutMs / 1_000;
    return (readMaxTokens(this.#job.body) ?? Infinity) >= seconds * fewestTokensPerSecond;
  }

  /** The best count of completion tokens so far. */
  get completionTokens(): number {
    return Math.max(this.#mostReported, this.#counted);
  }

  /** A call begins; one before it came to nothing. */
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

  /** A request was written to the vendor; a search may take several. */
  markSent(): void {
    this.#calls += 1;
    if (this.#calls === 1 || this.#isCovered) this.#unseen?.restart();
    this.#isCovered = false;
  }

  /** One of the answers came to its end. */
  finish(index: number): void {
    this.#unseen?.finish(index);
  }

  end(): void {
    this.#endedAtMs = this.#nowMs();
    this.#unseen?.end();
  }

  /** The vendor went on while nobody read what it said. */
  markUnread(): void {
    this.#isCovered = false;
  }

  takeDelta({ index, delta }: ChoiceDelta): void {
    const tokens = countDelta(delta, this.#model?.tokenizer);
    // Our own count may be wrong, and never charges for more than was reserved.
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

  /** As the vendor reported it; null where that is unknown. */
  #findPrompt(ending: CallEnding): number | null {
    // No prompt is empty: a zero stands for a count that was to follow.
    const prompt = this.#reported?.promptTokens || null;
    if (ending === 'complete') return prompt;
    // Of a search the results are counted at its end.
    const isFinal = this.isCovered || !this.#maySearch;
    return isFinal ? prompt : null;
  }

  #findCompletion(ending: CallEnding): number | null {
    const reported = this.#reported?.completionTokens ?? null;
    if (reported === null) return null;
    // What is told ahead of an answer and never again is as good as our own count, where it is more; no answer is empty
    // that was seen.
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
   * What was seen or reported so far, and no more where the vendor or we failed. A caller who left pays for what the vendor
   * may have generated unseen as well: as much as fits the time, within the reservation. So does one whose answer came to
   * its end without a count, for reasoning that was not shown.
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
    // A server of one's own that reports nothing mostly streams what it reasons; without any, it was told not to.
    return (
      !this.#showsReasoning &&
      this.#job.body.reasoning_effort !== 'none' &&
      mayReason(this.#job, this.#model!)
    );
  }
}

const nothing = { cachedTokens: null, cacheWriteTokens: null, reasoningTokens: null, webSearchTokens: null };
