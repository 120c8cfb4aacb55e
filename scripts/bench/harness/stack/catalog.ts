import type { Vendor } from './vendors.ts';

/** Parts of a catalog for the gateway. */

export const openaiUpstream = ({ url }: Vendor, maxConcurrency: number) => ({
  kind: 'openai',
  baseUrl: `${url}/v1`,
  maxConcurrency,
});

interface Model {
  readonly id: string;
  readonly upstream: string;
  /** The model's name at the vendor. */
  readonly model: string;
}

interface ChatModel extends Model {
  readonly context?: number;
  readonly maxOutputTokens?: number;
}

export const chatModel = ({
  id,
  upstream,
  model,
  context = 128_000,
  maxOutputTokens = 16_384,
}: ChatModel) => ({
  id,
  type: 'chat',
  context,
  max_output_tokens: maxOutputTokens,
  pricing: { type: 'tokens', prompt: 15, completion: 60 },
  routes: [{ upstream, model }],
});

interface EmbeddingModel extends Model {
  readonly dimensions?: number;
  readonly isAdjustable?: boolean;
}

export const embeddingModel = ({
  id,
  upstream,
  model,
  dimensions = 1536,
  isAdjustable = true,
}: EmbeddingModel) => ({
  id,
  type: 'embedding',
  context: 8192,
  dimensions: { default: dimensions, adjustable: isAdjustable },
  pricing: { type: 'tokens', in_cost_per_million: 2 },
  routes: [{ upstream, model }],
});
