import type { Usage } from '../catalog/cost.ts';
import { nanoPerRub } from '../encoding/money.ts';
import type { ProcessMetrics } from '../platform/metrics/process-metrics.ts';

/** What a settled request used. */
export interface SettledUsage {
  readonly model: string;
  readonly usage: Pick<Usage, 'promptTokens' | 'cacheReadTokens' | 'completionTokens'>;
  /** Part of the completion tokens. */
  readonly reasoningTokens: number;
  readonly costNano: bigint;
}

/** Counts what the requests that a process settles use and cost. For charts: the ledger has the exact sums. */
export class UsageMetrics {
  readonly #tokens;
  readonly #cost;

  constructor(metrics: ProcessMetrics) {
    this.#tokens = metrics.counter(
      {
        name: 'tokens_total',
        help: 'Tokens of settled requests: `prompt` without `cached`, `completion` without `reasoning`.',
      },
      ['model', 'kind'],
    );
    this.#cost = metrics.counter(
      {
        name: 'cost_roubles_total',
        help: 'Roubles charged for settled requests. Free requests cost nothing.',
      },
      ['model'],
    );
  }

  note({ model, usage, reasoningTokens, costNano }: SettledUsage): void {
    const { promptTokens, cacheReadTokens, completionTokens } = usage;
    for (const [kind, tokens] of [
      ['prompt', promptTokens - cacheReadTokens],
      ['cached', cacheReadTokens],
      ['completion', completionTokens - reasoningTokens],
      ['reasoning', reasoningTokens],
    ] as const)
      // A counter rejects a negative number, which a vendor's report may lead to.
      if (tokens > 0) this.#tokens.inc({ model, kind }, tokens);
    if (costNano > 0n) this.#cost.inc({ model }, Number(costNano) / Number(nanoPerRub));
  }
}
