import { addTraffic, noTraffic, toHistogram, type TrafficSums } from './traffic-sums.ts';
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

/** Sums over requests. The size depends only on the number of models. */
export class RequestSums {
  readonly #models = new Map<string, ModelSums>();
  readonly #traffic = new Map<string, TrafficSums>();
  #totals = noTotalSums;

  get models(): ReadonlyMap<string, ModelSums> {
    return this.#models;
  }

  /** What operators see, by model. */
  get traffic(): ReadonlyMap<string, TrafficSums> {
    return this.#traffic;
  }

  get totals(): TotalSums {
    return this.#totals;
  }

  get isEmpty(): boolean {
    return this.#totals.requests === 0;
  }

  add(request: SettledRequest): void {
    const judgement = classifyRequest(request);
    this.#addTotals({
      requests: 1,
      succeeded: judgement === 'succeeded' ? 1 : 0,
      failed: judgement === 'failed' ? 1 : 0,
      tokens: request.promptTokens + request.completionTokens,
    });
    this.#addTraffic(request.model, toTraffic(request, judgement));
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
    for (const [model, sums] of other.traffic) this.#addTraffic(model, sums);
  }

  #addTotals(added: TotalSums): void {
    this.#totals = addStats(totalStats, this.#totals, added);
  }

  #addTraffic(model: string, added: TrafficSums): void {
    this.#traffic.set(model, addTraffic(this.#traffic.get(model) ?? noTraffic, added));
  }

  #addModel(model: string, added: ModelSums): void {
    this.#models.set(model, addStats(modelStats, this.#models.get(model) ?? noModelSums, added));
  }
}

function toTraffic(request: SettledRequest, judgement: ReturnType<typeof classifyRequest>): TrafficSums {
  const { isAwaited, costNano, vendorCostNano, durationMs, firstTokenMs } = request;
  const isTimed = isAwaited && judgement === 'succeeded';
  return {
    rejected: judgement === 'unjudged' ? 1 : 0,
    costNano,
    ...(vendorCostNano === null
      ? { vendorCostNano: 0n, costed: 0, costedNano: 0n }
      : { vendorCostNano, costed: 1, costedNano: costNano }),
    durations: isTimed ? toHistogram(durationMs) : [],
    firstTokens: isTimed && firstTokenMs !== undefined ? toHistogram(firstTokenMs) : [],
  };
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
