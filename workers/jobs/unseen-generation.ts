import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { maySearch } from '../../shared/pricing/search-allowance.ts';
import { mostTokensPerSecond } from '../../shared/pricing/usage-bounds.ts';
import { countChoices } from '../../shared/routing/chat-needs.ts';
import type { ChatEvent } from '../upstreams/upstream.ts';
import { mayReason } from './chat-report-filter.ts';
import { ChoiceSilence, longestStepMs } from './choice-silence.ts';
import { isReasoningItself } from './count-delta.ts';
import { isReadAsStream, type AskedChat } from './read-as-stream.ts';

/** What one choice says. */
export type ChoiceDelta = Pick<Extract<ChatEvent, { type: 'delta' }>, 'index' | 'delta'>;

/** An upper count of what a vendor may have generated for a chat since it last reported all of it. */
export class UnseenGeneration {
  readonly #route: CatalogRoute;
  readonly #isStreamed: boolean;
  /** One for each choice: of several one may be silent while another speaks. */
  readonly #silences: readonly ChoiceSilence[];
  /** By the numbers that the vendor gives its choices, in the order in which they came. */
  readonly #byIndex = new Map<number, ChoiceSilence>();
  readonly #nowMs: () => number;
  /** Since the last report. */
  #seenTokens = 0;

  constructor(
    job: AskedChat,
    model: Pick<CatalogModel, 'published' | 'searchesUnasked'>,
    route: CatalogRoute,
    nowMs: () => number,
  ) {
    const { body } = job;
    this.#route = route;
    this.#isStreamed = isReadAsStream(job);
    const hides = hidesAnywhere(job, model, route);
    const startedAtMs = nowMs();
    this.#silences = Array.from(
      { length: countChoices(route, body) },
      () => new ChoiceSilence(hides, startedAtMs),
    );
    this.#nowMs = nowMs;
  }

  /** Everything so far is reported, or there is nothing yet: what is generated from now on is not. */
  restart(): void {
    for (const silence of this.#silences) silence.restart(this.#nowMs());
    this.#seenTokens = 0;
  }

  take({ index, delta }: ChoiceDelta, tokens: number): void {
    this.#seenTokens += tokens;
    const isReasoning = !delta['content'] && isReasoningItself(delta, this.#route);
    const isCall = Array.isArray(delta['tool_calls']);
    if (!isReasoning && !isCall && !delta['content']) return;
    // What is said of a whole answer tells nothing of when it was generated.
    if (!this.#isStreamed) return;
    this.#find(index).take(this.#nowMs(), { isCall, reasoningTokens: isReasoning ? tokens : null });
  }

  /** A choice came to its end. */
  finish(index: number): void {
    this.#find(index).finish(this.#nowMs());
  }

  /** The call is over. */
  end(): void {
    for (const silence of this.#silences) silence.end(this.#nowMs());
  }

  /** Whether there was time to generate anything that nobody saw. */
  get isPossible(): boolean {
    const nowMs = this.#nowMs();
    return this.#silences.some((silence) => silence.countMs(nowMs) > longestStepMs);
  }

  /** What was seen, and what may have been generated beside it. */
  countTokens(): number {
    const nowMs = this.#nowMs();
    const unseen = this.#silences.map((silence) =>
      Math.ceil((silence.countMs(nowMs) / 1_000) * mostTokensPerSecond),
    );
    return this.#seenTokens + unseen.reduce((sum, tokens) => sum + tokens, 0);
  }

  #find(index: number): ChoiceSilence {
    let silence = this.#byIndex.get(index);
    if (silence === undefined) {
      // Should a vendor make more choices than it was asked for, the last share one.
      silence = this.#silences[Math.min(this.#byIndex.size, this.#silences.length - 1)]!;
      this.#byIndex.set(index, silence);
    }
    return silence;
  }
}

/** Whether the model may generate what nobody sees at any time, whatever it said last. */
function hidesAnywhere(
  job: AskedChat,
  model: Pick<CatalogModel, 'published' | 'searchesUnasked'>,
  { upstream }: CatalogRoute,
): boolean {
  const { body } = job;
  const modalities = body.modalities ?? model.published.output_modalities ?? [];
  // Gemini sends a tool call whole, and nothing of it before.
  const mayCall = (body.tools?.length ?? 0) > 0 && body.tool_choice !== 'none';
  return (
    !isReadAsStream(job) ||
    mayReason(job, model) ||
    maySearch(body, model) ||
    modalities.includes('image') ||
    modalities.includes('audio') ||
    (mayCall && upstream.kind === 'gemini')
  );
}
