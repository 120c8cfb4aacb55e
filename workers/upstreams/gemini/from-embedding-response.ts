import { bytesPerFloat, findInvalidVectors, writeNumbers } from '../finite-vectors.ts';
import { isRecord } from '../../../shared/encoding/json-record.ts';
import { parseRecord, readArray, readCount } from '../json-value.ts';
import { type EmbeddingResponse, type EmbeddingCall, UpstreamError, wrongLength } from '../upstream.ts';
import { isErrorBody, toEmbeddedError } from './from-error.ts';

/**
 * Returns the vectors as bytes, in the order of their inputs. They arrive as JSON numbers, also in that order.
 */
export function fromEmbeddingResponse(
  text: string,
  call: EmbeddingCall,
  apiKey: string | null,
): EmbeddingResponse {
  const body = parseRecord(text, 'an embedding response');
  if (isErrorBody(body)) {
    throw toEmbeddedError(body, apiKey);
  }
  const embeddings = readArray(body['embeddings']);
  const count = call.inputs.length;
  if (embeddings.length !== count) {
    throw new UpstreamError(
      'unavailable',
      `the upstream sent ${embeddings.length} vectors for ${count} inputs`,
    );
  }
  if (!embeddings.every(hasValues)) {
    throw new UpstreamError('unavailable', 'the upstream sent an embedding without a vector');
  }
  const lengths = embeddings.map((embedding) => readValues(embedding).length);
  const dimensions = lengths.find((length) => length > 0) ?? call.dimensions ?? 1;
  if (call.dimensions !== null && dimensions !== call.dimensions) {
    throw wrongLength(dimensions, call.dimensions);
  }
  const vectors = Buffer.allocUnsafe(count * dimensions * bytesPerFloat);
  for (const [index, embedding] of embeddings.entries()) {
    writeVector(readValues(embedding), vectors, index, dimensions);
  }
  const usage = isRecord(body['usageMetadata']) ? body['usageMetadata'] : {};
  const promptTokens = readCount(usage['promptTokenCount']);
  return {
    vectors,
    dimensions,
    broken: findInvalidVectors(vectors, dimensions),
    promptTokens,
    release: null,
  };
}

/** Null and an empty array are values: the model could not make a vector for that input. */
const hasValues = (embedding: unknown): boolean =>
  isRecord(embedding) && (embedding['values'] === null || Array.isArray(embedding['values']));

function readValues(embedding: unknown): readonly unknown[] {
  return isRecord(embedding) ? readArray(embedding['values']) : [];
}

function writeVector(values: readonly unknown[], vectors: Buffer, index: number, dimensions: number): void {
  const start = index * dimensions * bytesPerFloat;
  if (values.length === 0) {
    // The model could not make one.
    vectors.fill(0xff, start, start + dimensions * bytesPerFloat);
    return;
  }
  writeNumbers(values, vectors, index, dimensions);
}
