import type { EmbeddingResultHeader } from '../work/replies/result.ts';
import { toRubNumber } from '../encoding/money.ts';
import type { ChunkedBody } from './chunked-body.ts';
import { maxBytesPerFloat, writeFloats } from './write-floats.ts';

/**
 * A response with fewer bytes of vectors than this is a single buffer; a larger one is generated as its client reads
 * it.
 */
const minChunkedBytes = 256_000;
/**
 * Number of bytes generated at a time, which takes a few tenths of a millisecond. A single vector may need more bytes.
 */
const bytesPerChunk = 256 * 1024;

export interface EmbeddingResponseParts {
  readonly requestId: string;
  readonly model: string;
  readonly header: EmbeddingResultHeader;
  /** Float32, little-endian, one vector after the other. */
  readonly vectors: Buffer;
  readonly format: 'float' | 'base64';
}

/** Serializes an embedding response to JSON bytes, ready for the socket. */
export function presentEmbeddings(response: EmbeddingResponseParts): Buffer | ChunkedBody {
  if (response.vectors.length >= minChunkedBytes) {
    return chunkResponse(response);
  }
  const target = Buffer.allocUnsafe(maxEmbeddingsBytes(response));
  return target.subarray(0, writeEmbeddings(response, target, 0));
}

/** How many bytes `writeEmbeddings` needs at most. */
export const maxEmbeddingsBytes = (response: EmbeddingResponseParts): number =>
  maxBytesAroundItems +
  maxBytesPerUnit * (response.requestId.length + response.model.length) +
  countVectors(response) * maxBytesPerItem(response);

/** Of the names and numbers around the vectors, without the request id and the model. */
const maxBytesAroundItems = 512;
/** A UTF-16 unit that JSON escapes. */
const maxBytesPerUnit = 6;

/** What is written around a response, ASCII or not. */
export interface TextAround {
  readonly before: string;
  readonly after: string;
}

const nothingAround: TextAround = { before: '', after: '' };

/**
 * Serializes an embedding response of any size into `target`.
 * @returns the offset of the next byte
 */
export function writeEmbeddings(
  response: EmbeddingResponseParts,
  target: Buffer,
  at: number,
  { before, after }: TextAround = nothingAround,
): number {
  const around = { before: before + writeHead(response), after: writeTail(response) + after };
  return writeItems(response, 0, countVectors(response), { target, at, ...around });
}

function chunkResponse(response: EmbeddingResponseParts): ChunkedBody {
  const count = countVectors(response);
  const maxItemBytes = maxBytesPerItem(response);
  const perChunk = Math.max(1, Math.floor(bytesPerChunk / maxItemBytes));
  const head = Buffer.from(writeHead(response));
  const tail = Buffer.from(writeTail(response));
  let from = 0;
  let isDone = false;
  return {
    maxChunkBytes: head.length + perChunk * maxItemBytes + tail.length,
    write(target) {
      if (isDone) return 0;
      const to = Math.min(count, from + perChunk);
      const start = from === 0 ? head.copy(target) : 0;
      const at = writeItems(response, from, to, { target, at: start, ...nothingAround });
      from = to;
      isDone = to === count;
      return isDone ? at + tail.copy(target, at) : at;
    },
  };
}

function countVectors({ header, vectors }: EmbeddingResponseParts): number {
  return vectors.length / (header.dimensions * 4);
}

/** Maximum bytes of an item except its vector: includes the comma before it and an index of any length. */
const maxBytesAroundVector = 80;

function maxBytesPerItem({ header, format }: EmbeddingResponseParts): number {
  const { dimensions } = header;
  const vector = format === 'base64' ? Math.ceil((dimensions * 4) / 3) * 4 : dimensions * maxBytesPerFloat;
  return maxBytesAroundVector + vector;
}

/** @returns the offset of the next byte */
function writeItems(
  { header, vectors, format }: EmbeddingResponseParts,
  from: number,
  to: number,
  { target, at, before, after }: TextAround & { readonly target: Buffer; readonly at: number },
): number {
  const size = header.dimensions * 4;
  const view = new DataView(target.buffer, target.byteOffset, target.length);
  const [opening, closing] = format === 'base64' ? ['"', '"}'] : ['[', ']}'];
  let end = at;
  // Of what precedes the next vector. One call for all of it, because each takes as long as copying a kilobyte.
  let text = before;
  for (let index = from; index < to; index++) {
    const comma = index === 0 ? '' : ',';
    text += `${comma}{"object":"embedding","index":${index},"embedding":${opening}`;
    end += target.write(text, end);
    const start = index * size;
    if (format === 'base64')
      end += target.write(vectors.toString('base64', start, start + size), end, 'latin1');
    else end = writeFloats(vectors.subarray(start, start + size), view, end);
    text = closing;
  }
  return end + target.write(text + after, end);
}

function writeHead({ requestId, model, header }: EmbeddingResponseParts): string {
  const [id, name] = [JSON.stringify(requestId), JSON.stringify(model)];
  return `{"id":${id},"created":${header.created},"object":"list","model":${name},"data":[`;
}

function writeTail({ header }: EmbeddingResponseParts): string {
  const { promptTokens: tokens, durationMs, costNano, free } = header;
  const cost = `"cost_request":${toRubNumber(BigInt(costNano))},"free_request":${free}`;
  return `],"usage":{"prompt_tokens":${tokens},"total_tokens":${tokens},"total_time":${durationMs / 1_000},${cost}}}`;
}
