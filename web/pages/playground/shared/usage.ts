import type { components } from '../../../generated/api.d.ts';
import { addRoubles } from '../../../lib/nano.ts';

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
  /** In roubles, as a decimal string: exact, and kept as JSON. */
  readonly cost: string;
  readonly isFree: boolean;
}

/** @param cost in roubles; null if nothing was charged */
export const writeCost = (cost: number | null): string => addRoubles([cost ?? 0]);

/** What the usage of every kind of request has. */
const readCost = (usage: Schemas['EmbeddingUsage'] | Schemas['ImageUsage'] | Schemas['ChatUsage']) => ({
  seconds: usage.total_time,
  cost: writeCost(usage.cost_request),
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
  cost: writeCost(row.cost_request),
  isFree: row.free_requests,
});

export interface UsageSum {
  readonly requests: number;
  readonly input: number;
  readonly output: number;
  readonly cost: string;
}

export const noUsage: UsageSum = { requests: 0, input: 0, output: 0, cost: '0' };

/** Adds what a request used; nothing if that is unknown. */
export const addUsage = (sum: UsageSum, usage: Usage | null): UsageSum =>
  usage === null
    ? sum
    : {
        requests: sum.requests + 1,
        input: sum.input + usage.input,
        output: sum.output + usage.output,
        cost: addRoubles([sum.cost, usage.cost]),
      };
