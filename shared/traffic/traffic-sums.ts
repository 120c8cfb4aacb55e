import type { UsageEvent } from '../ledger/usage-event.ts';

/** What the public figures need of a settled request. */
export type SettledRequest = Pick<
  UsageEvent,
  'model' | 'success' | 'responseCode' | 'durationMs' | 'billedMs' | 'promptTokens' | 'completionTokens'
>;

/**
 * Sums of one model. `succeeded` and `failed` count the judged requests, the rest sums over the successes: the time
 * from admission to settlement, the vendor's part of it, and the tokens.
 */
export const modelFigures = [
  'succeeded',
  'failed',
  'durationMs',
  'vendorMs',
  'promptTokens',
  'completionTokens',
] as const;
export type ModelSums = Readonly<Record<(typeof modelFigures)[number], number>>;

/** Sums over all models; `requests` and `tokens` are those of all requests, judged or not. */
export const totalFigures = ['requests', 'succeeded', 'failed', 'tokens'] as const;
export type TotalSums = Readonly<Record<(typeof totalFigures)[number], number>>;

export const noModelSums: ModelSums = {
  succeeded: 0,
  failed: 0,
  durationMs: 0,
  vendorMs: 0,
  promptTokens: 0,
  completionTokens: 0,
};
export const noTotalSums: TotalSums = { requests: 0, succeeded: 0, failed: 0, tokens: 0 };

/**
 * Whether a request speaks for its model or against it. A refusal of the caller's own request and a caller who left
 * (4xx) do neither.
 */
export function judgeRequest({
  success,
  responseCode,
}: Pick<SettledRequest, 'success' | 'responseCode'>): 'succeeded' | 'failed' | 'unjudged' {
  if (success) return 'succeeded';
  return responseCode >= 500 ? 'failed' : 'unjudged';
}

/** Requests as sums: as small after a million of them as after one of each model. */
export class TrafficSums {
  readonly #models = new Map<string, ModelSums>();
  #totals = noTotalSums;

  get models(): ReadonlyMap<string, ModelSums> {
    return this.#models;
  }

  get totals(): TotalSums {
    return this.#totals;
  }

  get isEmpty(): boolean {
    return this.#totals.requests === 0;
  }

  add(request: SettledRequest): void {
    const verdict = judgeRequest(request);
    this.#addTotals({
      requests: 1,
      succeeded: verdict === 'succeeded' ? 1 : 0,
      failed: verdict === 'failed' ? 1 : 0,
      tokens: request.promptTokens + request.completionTokens,
    });
    if (verdict === 'failed') this.#addModel(request.model, { ...noModelSums, failed: 1 });
    if (verdict !== 'succeeded') return;
    this.#addModel(request.model, {
      succeeded: 1,
      failed: 0,
      // A machine's clock may be set back while a request runs.
      durationMs: Math.max(0, request.durationMs),
      vendorMs: Math.max(0, request.billedMs),
      promptTokens: request.promptTokens,
      completionTokens: request.completionTokens,
    });
  }

  addAll(other: TrafficSums): void {
    this.#addTotals(other.totals);
    for (const [model, sums] of other.models) this.#addModel(model, sums);
  }

  #addTotals(more: TotalSums): void {
    this.#totals = addFigures(totalFigures, this.#totals, more);
  }

  #addModel(model: string, more: ModelSums): void {
    this.#models.set(model, addFigures(modelFigures, this.#models.get(model) ?? noModelSums, more));
  }
}

function addFigures<K extends string>(
  names: readonly K[],
  a: Readonly<Record<K, number>>,
  b: Readonly<Record<K, number>>,
): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Record<K, number>;
}
