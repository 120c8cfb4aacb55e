import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { maySearch } from '../../shared/catalog/search-allowance.ts';
import { maxTokensPerSecond } from '../../shared/catalog/usage-bounds.ts';
import { countChoices } from '../../shared/routing/chat-needs.ts';
import type { ChatEvent } from '../upstreams/upstream.ts';
import { mayReason } from './chat-report-filter.ts';
import { ChoiceSilence, longestStepMs } from './choice-silence.ts';
import { isReasoningItself } from './count-delta.ts';
import { isReadAsStream, type AskedChat } from './read-as-stream.ts';

export type ChoiceDelta = Pick<Extract<ChatEvent, { type: 'delta' }>, 'index' | 'delta'>;

/** Upper bound on what a vendor may have generated for a chat since it last reported all of it. */
export class UnseenGeneration {
  readonly #route: CatalogRoute;
  readonly #isStreamed: boolean;
  /** One for each choice, because one may be silent while another sends output. */
  readonly #silences: readonly ChoiceSilence[];
  /** By the vendor's choice index, in order of arrival. */
  readonly #byIndex = new Map<number, ChoiceSilence>();
  readonly #nowMs: () => number;
  /** Since the last report. */
  #seenTokens = 0;

  constructor(
    job: AskedChat,
    model: Pick<CatalogModel, 'published' | 'alwaysMaySearch'>,
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

  /** Starts over: everything so far is reported, or nothing was generated yet. */
  restart(): void {
    for (const silence of this.#silences) silence.restart(this.#nowMs());
    this.#seenTokens = 0;
  }

  take({ index, delta }: ChoiceDelta, tokens: number): void {
    this.#seenTokens += tokens;
    const isReasoning = !delta['content'] && isReasoningItself(delta, this.#route);
    const isCall = Array.isArray(delta['tool_calls']);
    if (!isReasoning && !isCall && !delta['content']) return;
    // A response that is not streamed does not show when its parts were generated.
    if (!this.#isStreamed) return;
    this.#find(index).take(this.#nowMs(), { isCall, reasoningTokens: isReasoning ? tokens : null });
  }

  /** Records that a choice came to its end. */
  finish(index: number): void {
    this.#find(index).finish(this.#nowMs());
  }

  /** Records that the call has ended. */
  end(): void {
    for (const silence of this.#silences) silence.end(this.#nowMs());
  }

  /** Whether there was time to generate anything unseen. */
  get isPossible(): boolean {
    const nowMs = this.#nowMs();
    return this.#silences.some((silence) => silence.countMs(nowMs) > longestStepMs);
  }

  /** The tokens that were seen, plus what may have been generated unseen. */
  countTokens(): number {
    const nowMs = this.#nowMs();
    const unseen = this.#silences.map((silence) =>
      Math.ceil((silence.countMs(nowMs) / 1_000) * maxTokensPerSecond),
    );
    return this.#seenTokens + unseen.reduce((sum, tokens) => sum + tokens, 0);
  }

  #find(index: number): ChoiceSilence {
    let silence = this.#byIndex.get(index);
    if (silence === undefined) {
      // If a vendor makes more choices than requested, the surplus ones share the last entry.
      silence = this.#silences[Math.min(this.#byIndex.size, this.#silences.length - 1)]!;
      this.#byIndex.set(index, silence);
    }
    return silence;
  }
}

/** Whether the model may generate unseen tokens at any time, whatever it sent last. */
function hidesAnywhere(
  job: AskedChat,
  model: Pick<CatalogModel, 'published' | 'alwaysMaySearch'>,
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
