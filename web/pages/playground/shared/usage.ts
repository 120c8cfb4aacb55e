import type { components } from '../../../generated/api.d.ts';

type Schemas = components['schemas'];

/** What a request used and cost. */
export interface Usage {
  readonly input: number;
  /** Of the input. */
  readonly cached: number;
  readonly output: number;
  /** Of the output. */
  readonly reasoning: number;
  readonly seconds: number | null;
  /** In nano-roubles, which can be added up exactly. */
  readonly costNano: number;
  readonly isFree: boolean;
}

const nanoPerRouble = 1e9;

export const toNano = (roubles: number | null): number => Math.round((roubles ?? 0) * nanoPerRouble);

/** @returns roubles */
export const toRoubles = (nano: number): number => nano / nanoPerRouble;

/** What the usage of every kind of request has. */
const readCost = (usage: Schemas['EmbeddingUsage'] | Schemas['ImageUsage'] | Schemas['ChatUsage']) => ({
  seconds: usage.total_time,
  costNano: toNano(usage.cost_request),
  isFree: usage.free_request === true,
});

export const readChatUsage = (usage: Schemas['ChatUsage']): Usage => ({
  input: usage.prompt_tokens,
  cached: usage.prompt_tokens_details?.cached_tokens ?? 0,
  output: usage.completion_tokens,
  reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  ...readCost(usage),
});

export const readImageUsage = (usage: Schemas['ImageUsage']): Usage => ({
  input: usage.input_tokens,
  cached: 0,
  output: usage.output_tokens,
  reasoning: 0,
  ...readCost(usage),
});

export const readEmbeddingUsage = (usage: Schemas['EmbeddingUsage']): Usage => ({
  input: usage.prompt_tokens,
  cached: 0,
  output: 0,
  reasoning: 0,
  ...readCost(usage),
});

export const readLogUsage = (row: Schemas['RequestLog']): Usage => ({
  input: row.prompt_tokens,
  cached: row.cache_read_tokens ?? 0,
  output: row.completion_tokens,
  reasoning: row.reasoning_tokens ?? 0,
  seconds: row.total_time,
  costNano: toNano(row.cost_request),
  isFree: row.free_requests,
});

export interface UsageSum {
  readonly requests: number;
  readonly input: number;
  readonly output: number;
  readonly costNano: number;
}

export const noUsage: UsageSum = { requests: 0, input: 0, output: 0, costNano: 0 };

/** Adds what a request used; nothing if that is unknown. */
export const addUsage = (sum: UsageSum, usage: Usage | null): UsageSum =>
  usage === null
    ? sum
    : {
        requests: sum.requests + 1,
        input: sum.input + usage.input,
        output: sum.output + usage.output,
        costNano: sum.costNano + usage.costNano,
      };
