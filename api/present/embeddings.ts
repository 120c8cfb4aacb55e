import type { EmbeddingResultHeader } from '../../shared/reply/result.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';
import type { ChunkedBody } from './send-chunks.ts';
import { maxBytesPerFloat, writeFloats } from './write-floats.ts';

/** A response with fewer bytes of vectors is a single buffer; a larger one is generated as its client reads it. */
const chunkFromBytes = 256_000;
/** Bytes generated at a time, which takes some tenths of a millisecond. A single vector may need more. */
const bytesPerChunk = 256 * 1024;

export interface EmbeddingAnswer {
  readonly requestId: string;
  readonly model: string;
  readonly header: EmbeddingResultHeader;
  /** Float32, little-endian, one vector after the other. */
  readonly vectors: Buffer;
  readonly format: 'float' | 'base64';
}

/** Serializes an embedding response to JSON bytes, ready for the socket. */
export function presentEmbeddings(answer: EmbeddingAnswer): Buffer | ChunkedBody {
  if (answer.vectors.length >= chunkFromBytes) {
    return chunkAnswer(answer);
  }
  const head = writeHead(answer);
  const count = countVectors(answer);
  const tail = writeTail(answer);
  const target = Buffer.allocUnsafe(head.length + count * mostBytesPerItem(answer) + tail.length);
  head.copy(target);
  const end = writeItems(answer, 0, count, target, head.length);
  tail.copy(target, end);
  return target.subarray(0, end + tail.length);
}

function chunkAnswer(answer: EmbeddingAnswer): ChunkedBody {
  const count = countVectors(answer);
  const mostBytes = mostBytesPerItem(answer);
  const perChunk = Math.max(1, Math.floor(bytesPerChunk / mostBytes));
  const head = writeHead(answer);
  const tail = writeTail(answer);
  let from = 0;
  let isOver = false;
  return {
    maxChunkBytes: head.length + perChunk * mostBytes + tail.length,
    write(target) {
      if (isOver) return 0;
      const to = Math.min(count, from + perChunk);
      let at = from === 0 ? head.copy(target) : 0;
      at = writeItems(answer, from, to, target, at);
      from = to;
      isOver = to === count;
      return isOver ? at + tail.copy(target, at) : at;
    },
  };
}

function countVectors({ header, vectors }: EmbeddingAnswer): number {
  return vectors.length / (header.dimensions * 4);
}

/** Everything in an item except its vector, with an index of any length and the preceding comma. */
const mostBytesAroundVector = 80;

function mostBytesPerItem({ header, format }: EmbeddingAnswer): number {
  const { dimensions } = header;
  const vector = format === 'base64' ? Math.ceil((dimensions * 4) / 3) * 4 : dimensions * maxBytesPerFloat;
  return mostBytesAroundVector + vector;
}

/** @returns the offset of the next byte */
function writeItems(
  { header, vectors, format }: EmbeddingAnswer,
  from: number,
  to: number,
  target: Buffer,
  at: number,
): number {
  const size = header.dimensions * 4;
  const view = new DataView(target.buffer, target.byteOffset, target.length);
  const [opening, closing] = format === 'base64' ? ['"', '"}'] : ['[', ']}'];
  let end = at;
  for (let index = from; index < to; index++) {
    const vector = vectors.subarray(index * size, (index + 1) * size);
    const comma = index === 0 ? '' : ',';
    const start = `${comma}{"object":"embedding","index":${index},"embedding":${opening}`;
    end += target.write(start, end, 'latin1');
    if (format === 'base64') end += target.write(vector.toString('base64'), end, 'latin1');
    else end = writeFloats(vector, view, end);
    end += target.write(closing, end, 'latin1');
  }
  return end;
}

function writeHead({ requestId, model, header }: EmbeddingAnswer): Buffer {
  const head = { id: requestId, created: header.created, object: 'list', model };
  return Buffer.from(`${JSON.stringify(head).slice(0, -1)},"data":[`);
}

function writeTail({ header }: EmbeddingAnswer): Buffer {
  const usage = {
    prompt_tokens: header.promptTokens,
    total_tokens: header.promptTokens,
    total_time: header.durationMs / 1_000,
    cost_request: toRubNumber(BigInt(header.costNano)),
    free_request: header.free,
  };
  return Buffer.from(`],"usage":${JSON.stringify(usage)}}`);
}
