import type { JsonRecord } from '../json-value.ts';
import type { EmbeddingCall, UpstreamTarget } from '../upstream.ts';
import { toModelName } from './model-name.ts';

/** `batchEmbedContents`: a request an input, each of which names the model again. */
export function toEmbeddingRequest(
  target: UpstreamTarget,
  { inputs, dimensions }: EmbeddingCall,
): JsonRecord {
  const model = toModelName(target.model);
  const size =
    dimensions === null || target.drops.has('dimensions') ? {} : { outputDimensionality: dimensions };
  return { requests: inputs.map((text) => ({ model, content: { parts: [{ text }] }, ...size })) };
}
