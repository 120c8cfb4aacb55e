import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { maySearch } from '../../shared/pricing/search-allowance.ts';
import { mostTokensPerSecond } from '../../shared/pricing/usage-bounds.ts';
import type { ChatJob } from '../../shared/queue/job-kinds.ts';
import { mayReason } from './chat-report-filter.ts';
import { isReasoningItself } from './count-delta.ts';

/** Hosted models generate at least so many; reasoning that comes slower is a summary of what was generated. */
export const fewestTokensPerSecond = 10;
/** Between two words that are said a model has no time to generate anything else. */
const longestStepMs = 500;

type Delta = Readonly<Record<string, unknown>>;

/** An upper count of what a vendor may have generated for a chat since it last reported all of it. */
export class UnseenGeneration {
  readonly #route: CatalogRoute;
  readonly #choices: number;
  /** Whether one choice streams alone: of several one may be silent while another speaks. */
  readonly #isAlone: boolean;
  readonly #hidesAnywhere: boolean;
  readonly #nowMs: () => number;
  /** A tool call has begun. Its arguments may come late: Anthropic, for one, gathers them until a value is whole. */
  #isCalling = false;
  /** Since when nothing is reported. */
  #sinceMs: number;
  /** In which nothing was said, up to `#saidAtMs`. */
  #silentMs = 0;
  #saidAtMs: number;
  /** For so long the reasoning that was said last explains that nothing follows it. */
  #explainedMs = 0;
  #seenTokens = 0;
  #finished = new Set<number>();
  #endedAtMs: number | null = null;

  constructor(
    job: Pick<ChatJob, 'body'>,
    model: Pick<CatalogModel, 'published' | 'searchesUnasked'>,
    route: CatalogRoute,
    nowMs: () => number,
  ) {
    const { body } = job;
    this.#route = route;
    this.#choices = body.n ?? 1;
    this.#isAlone = this.#choices === 1 && body.stream === true;
    this.#hidesAnywhere = hidesAnywhere(job, model, route);
    this.#nowMs = nowMs;
    this.#sinceMs = this.#saidAtMs = nowMs();
  }

  /** Everything so far is reported, or there is nothing yet: what is generated from now on is not. */
  restart(): void {
    this.#sinceMs = this.#saidAtMs = this.#readClock();
    this.#silentMs = 0;
    this.#seenTokens = 0;
  }

  take(delta: Delta, tokens: number): void {
    this.#seenTokens += tokens;
    const isReasoning = !delta['content'] && isReasoningItself(delta, this.#route);
    const isCall = Array.isArray(delta['tool_calls']);
    if (!isReasoning && !isCall && !delta['content']) return;
    const stepMs = this.#readClock() - this.#saidAtMs;
    if (this.#mayHide) this.#silentMs += this.#findSilence(stepMs, isReasoning ? tokens : null);
    this.#saidAtMs += stepMs;
    this.#isCalling = isCall;
  }

  /** A choice came to its end; once all have, nothing more is generated. */
  finish(index: number): void {
    this.#finished.add(index);
    if (this.#finished.size >= this.#choices) this.end();
  }

  /** The call is over. */
  end(): void {
    if (this.#finished.size < this.#choices || this.#endedAtMs === null) this.#endedAtMs = this.#nowMs();
  }

  /** Whether there was time to generate anything that nobody saw. */
  get isPossible(): boolean {
    return this.#countSilence() > longestStepMs;
  }

  /** What was seen, and what may have been generated beside it. */
  countTokens(): number {
    const seconds = Math.max(0, this.#countSilence()) / 1_000;
    return this.#seenTokens + Math.ceil(seconds * mostTokensPerSecond) * this.#choices;
  }

  get #mayHide(): boolean {
    return this.#hidesAnywhere || this.#isCalling;
  }

  #readClock(): number {
    return this.#endedAtMs ?? this.#nowMs();
  }

  #countSilence(): number {
    const nowMs = this.#readClock();
    if (this.#isAlone) return this.#silentMs + (this.#mayHide ? nowMs - this.#saidAtMs : 0);
    return this.#hidesAnywhere ? nowMs - this.#sinceMs : 0;
  }

  /** @param reasoningTokens null where what ends the step is all that was generated for it */
  #findSilence(stepMs: number, reasoningTokens: number | null): number {
    if (stepMs > longestStepMs) return stepMs;
    if (reasoningTokens === null) return 0;
    const explainedMs = this.#explainedMs + (reasoningTokens * 1_000) / fewestTokensPerSecond - stepMs;
    this.#explainedMs = Math.min(longestStepMs, Math.max(0, explainedMs));
    return Math.max(0, -explainedMs);
  }
}

/** Whether the model may generate what nobody sees at any time, whatever it said last. */
function hidesAnywhere(
  job: Pick<ChatJob, 'body'>,
  model: Pick<CatalogModel, 'published' | 'searchesUnasked'>,
  { upstream }: CatalogRoute,
): boolean {
  const { body } = job;
  const modalities = body.modalities ?? model.published.output_modalities ?? [];
  // Gemini sends a tool call whole, and nothing of it before.
  const mayCall = (body.tools?.length ?? 0) > 0 && body.tool_choice !== 'none';
  return (
    body.stream !== true ||
    mayReason(job, model) ||
    maySearch(body, model) ||
    modalities.includes('image') ||
    modalities.includes('audio') ||
    (mayCall && upstream.kind === 'gemini')
  );
}
