import type { UsageEvent } from './usage-event.ts';

/** What the stats need of a settled request. */
export interface SettledRequest extends Pick<
  UsageEvent,
  | 'model'
  | 'success'
  | 'responseCode'
  | 'durationMs'
  | 'firstTokenMs'
  | 'billedMs'
  | 'promptTokens'
  | 'completionTokens'
> {
  /** Whether its caller waits for it: it is neither a durable job nor a line of a batch. */
  readonly isAwaited: boolean;
  readonly costNano: bigint;
  /** Null if it is unknown. */
  readonly vendorCostNano: bigint | null;
}

/**
 * Sums of one model that everybody sees. `succeeded` and `failed` count the judged requests. The others are sums over the successful
 * requests: the time from admission to settlement, the vendor's part of that time, and the tokens.
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

/** Whether a request counts for or against its model. Rejected requests and disconnected callers (4xx) do neither. */
export function classifyRequest({
  success,
  responseCode,
}: Pick<SettledRequest, 'success' | 'responseCode'>): 'succeeded' | 'failed' | 'unjudged' {
  if (success) return 'succeeded';
  return responseCode >= 500 ? 'failed' : 'unjudged';
}

/** Sums over requests that everybody sees. The size depends only on the number of models. */
export class RequestSums {
  readonly #models: Map<string, ModelSums>;
  #totals: TotalSums;

  constructor(models = new Map<string, ModelSums>(), totals = noTotalSums) {
    this.#models = models;
    this.#totals = totals;
  }

  get models(): ReadonlyMap<string, ModelSums> {
    return this.#models;
  }

  get totals(): TotalSums {
    return this.#totals;
  }

  get requests(): number {
    return this.#totals.requests;
  }

  add(request: SettledRequest): void {
    const judgement = classifyRequest(request);
    this.#addTotals({
      requests: 1,
      succeeded: judgement === 'succeeded' ? 1 : 0,
      failed: judgement === 'failed' ? 1 : 0,
      tokens: request.promptTokens + request.completionTokens,
    });
    if (judgement === 'failed') this.#addModel(request.model, { ...noModelSums, failed: 1 });
    if (judgement !== 'succeeded') return;
    this.#addModel(request.model, {
      succeeded: 1,
      failed: 0,
      // A machine's clock may be set back during a request.
      durationMs: Math.max(0, request.durationMs),
      vendorMs: Math.max(0, request.billedMs),
      promptTokens: request.promptTokens,
      completionTokens: request.completionTokens,
    });
  }

  addAll(other: RequestSums): void {
    this.#addTotals(other.totals);
    for (const [model, sums] of other.models) this.#addModel(model, sums);
  }

  /** @returns parts of the sums, each of so many models; the first one has the sums over all of them */
  *listParts(models: number): Generator<RequestSums> {
    const all = [...this.#models];
    yield new RequestSums(new Map(all.slice(0, models)), this.#totals);
    for (let at = models; at < all.length; at += models)
      yield new RequestSums(new Map(all.slice(at, at + models)));
  }

  #addTotals(added: TotalSums): void {
    this.#totals = addStats(totalStats, this.#totals, added);
  }

  #addModel(model: string, added: ModelSums): void {
    this.#models.set(model, addStats(modelStats, this.#models.get(model) ?? noModelSums, added));
  }
}

function addStats<K extends string>(
  names: readonly K[],
  a: Readonly<Record<K, number>>,
  b: Readonly<Record<K, number>>,
): Record<K, number> {
  const sums = {} as Record<K, number>;
  for (const name of names) sums[name] = a[name] + b[name];
  return sums;
}
