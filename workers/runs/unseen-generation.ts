// decision 0025
import type { CatalogModel, CatalogRoute } from '../../shared/catalog/catalog-schema.ts';
import { maySearch } from '../../shared/catalog/search-allowance.ts';
import { maxTokensPerSecond } from '../../shared/catalog/usage-bounds.ts';
import { countChoices } from '../../shared/routing/chat-needs.ts';
import type { ChatEvent } from '../upstreams/upstream.ts';
import { mayReason } from './chat-report-filter.ts';
import { ChoiceSilence, maxStepMs } from './choice-silence.ts';
import { isFullReasoning } from './delta-content.ts';
import { isVendorStream, type ChatCallInput } from './read-as-stream.ts';

/** Text in any language has at least this many bytes of UTF-8 per token. */
const minBytesPerToken = 3;

export type ChoiceDelta = Pick<Extract<ChatEvent, { type: 'delta' }>, 'index' | 'delta'>;

/** Computes an upper bound on the tokens that a vendor may have generated for a chat since its last full report. */
export class UnseenGeneration {
  readonly #route: CatalogRoute;
  readonly #isStreamed: boolean;
  /** One per choice, because a choice may be silent while another one sends output. */
  readonly #silences: readonly ChoiceSilence[];
  /** By the vendor's choice index, in order of arrival. */
  readonly #byIndex = new Map<number, ChoiceSilence>();
  readonly #nowMs: () => number;

  constructor(
    job: ChatCallInput,
    model: Pick<CatalogModel, 'published' | 'alwaysMaySearch'>,
    route: CatalogRoute,
    nowMs: () => number,
  ) {
    const { body } = job;
    this.#route = route;
    this.#isStreamed = isVendorStream(job);
    const mayHide = mayHideAnytime(job, model, route);
    const startedAtMs = nowMs();
    this.#silences = Array.from(
      { length: countChoices(route, body) },
      () => new ChoiceSilence(mayHide, startedAtMs),
    );
    this.#nowMs = nowMs;
  }

  /** Starts over: everything so far has been reported, or nothing has been generated. */
  restart(): void {
    for (const silence of this.#silences) silence.restart(this.#nowMs());
  }

  take({ index, delta }: ChoiceDelta): void {
    const isReasoning = !delta['content'] && isFullReasoning(delta, this.#route);
    const isCall = Array.isArray(delta['tool_calls']);
    if (!isReasoning && !isCall && !delta['content']) return;
    // If the response is not streamed, the arrival of its parts does not show when they were generated.
    if (!this.#isStreamed) return;
    this.#find(index).take(this.#nowMs(), {
      isCall,
      reasoningTokens: isReasoning ? estimateTokens(delta) : null,
    });
  }

  /** Records that a choice is complete. */
  finish(index: number): void {
    this.#find(index).finish(this.#nowMs());
  }

  /** Records that the call has ended. */
  end(): void {
    for (const silence of this.#silences) silence.end(this.#nowMs());
  }

  /** Whether there was time to generate unseen tokens. */
  get isPossible(): boolean {
    const nowMs = this.#nowMs();
    return this.#silences.some((silence) => silence.countMs(nowMs) > maxStepMs);
  }

  /** The tokens that may have been generated unseen since the last report. */
  countTokens(): number {
    const nowMs = this.#nowMs();
    const unseen = this.#silences.map((silence) =>
      Math.ceil((silence.countMs(nowMs) / 1_000) * maxTokensPerSecond),
    );
    return unseen.reduce((sum, tokens) => sum + tokens, 0);
  }

  #find(index: number): ChoiceSilence {
    let silence = this.#byIndex.get(index);
    if (silence === undefined) {
      // If a vendor generates more choices than requested, the surplus ones share the last entry.
      silence = this.#silences[Math.min(this.#byIndex.size, this.#silences.length - 1)]!;
      this.#byIndex.set(index, silence);
    }
    return silence;
  }
}

/** Estimates the tokens of shown reasoning: rather too many, because a caller is charged for what they do not explain. */
function estimateTokens({ reasoning_content: content, reasoning: newer }: ChoiceDelta['delta']): number {
  const shown = content || newer;
  return Buffer.byteLength(typeof shown === 'string' ? shown : JSON.stringify(shown)) / minBytesPerToken;
}

/** Whether the model may generate unseen tokens at any time, regardless of its last output. */
function mayHideAnytime(
  job: ChatCallInput,
  model: Pick<CatalogModel, 'published' | 'alwaysMaySearch'>,
  { upstream }: CatalogRoute,
): boolean {
  const { body } = job;
  const modalities = body.modalities ?? model.published.output_modalities ?? [];
  // Gemini sends a tool call only once it is complete.
  const mayCall = (body.tools?.length ?? 0) > 0 && body.tool_choice !== 'none';
  return (
    !isVendorStream(job) ||
    mayReason(job, model) ||
    maySearch(body, model) ||
    modalities.includes('image') ||
    modalities.includes('audio') ||
    (mayCall && upstream.kind === 'gemini')
  );
}
