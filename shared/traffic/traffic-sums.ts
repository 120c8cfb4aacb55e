import type { UsageEvent } from '../ledger/usage-event.ts';

/** The fields of a settled request that the public stats need. */
export type SettledRequest = Pick<
  UsageEvent,
  'model' | 'success' | 'responseCode' | 'durationMs' | 'billedMs' | 'promptTokens' | 'completionTokens'
>;

/**
 * Sums of one model. `succeeded` and `failed` count the judged requests. The others are sums over the successes: the
 * time from admission to settlement, the vendor's part of it, and the tokens.
 */
export const modelStats = [
  'succeeded',
  'failed',
  'durationMs',
  'vendorMs',
  'promptTokens',
  'completionTokens',
] as const;
export type ModelSums = Readonly<Record<(typeof modelStats)[number], number>>;

/** Sums over all models. `requests` and `tokens` cover all requests, judged or not. */
export const totalStats = ['requests', 'succeeded', 'failed', 'tokens'] as const;
export type TotalSums = Readonly<Record<(typeof totalStats)[number], number>>;

export const noModelSums: ModelSums = {
  succeeded: 0,
  failed: 0,
  durationMs: 0,
  vendorMs: 0,
  promptTokens: 0,
  completionTokens: 0,
};
export const noTotalSums: TotalSums = { requests: 0, succeeded: 0, failed: 0, tokens: 0 };

/** Whether a request counts for or against its model. A rejected request and a caller that left (4xx) do neither. */
export function judgeRequest({
  success,
  responseCode,
}: Pick<SettledRequest, 'success' | 'responseCode'>): 'succeeded' | 'failed' | 'unjudged' {
  if (success) return 'succeeded';
  return responseCode >= 500 ? 'failed' : 'unjudged';
}

/** Sums over requests. The size depends on the number of models only. */
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
    this.#totals = addStats(totalStats, this.#totals, more);
  }

  #addModel(model: string, more: ModelSums): void {
    this.#models.set(model, addStats(modelStats, this.#models.get(model) ?? noModelSums, more));
  }
}

function addStats<K extends string>(
  names: readonly K[],
  a: Readonly<Record<K, number>>,
  b: Readonly<Record<K, number>>,
): Record<K, number> {
  return Object.fromEntries(names.map((name) => [name, a[name] + b[name]])) as Record<K, number>;
}
