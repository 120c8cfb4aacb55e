import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { EmbeddingCall, UpstreamTarget } from '../upstream.ts';
import { toModelName } from './model-name.ts';

/** Builds the body of `batchEmbedContents`: one request per input, each including the model. */
export function toEmbeddingRequest(
  target: UpstreamTarget,
  { inputs, dimensions }: EmbeddingCall,
): JsonRecord {
  const model = toModelName(target.model);
  const size =
    dimensions === null || target.drops.has('dimensions') ? {} : { outputDimensionality: dimensions };
  return { requests: inputs.map((text) => ({ model, content: { parts: [{ text }] }, ...size })) };
}
