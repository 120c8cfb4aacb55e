import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EmbeddingResultHeader } from '../../shared/reply/result.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';
import { maxBytesPerFloat, writeFloats } from './write-floats.ts';

/** Below this much of vectors an answer is one buffer; above it, it is written as the socket takes it. */
const streamFromBytes = 256_000;
/** Room for what a stream writes at once, which is some tenths of a millisecond of work; one vector may need more. */
const bytesPerChunk = 256 * 1024;

export interface EmbeddingAnswer {
  readonly requestId: string;
  readonly model: string;
  readonly header: EmbeddingResultHeader;
  /** Float32, little-endian, one vector after the other. */
  readonly vectors: Buffer;
  readonly format: 'float' | 'base64';
}

/** The JSON of an embedding answer, as bytes that are ready for the socket. */
export function presentEmbeddings(answer: EmbeddingAnswer): Buffer | Readable {
  if (answer.vectors.length >= streamFromBytes) {
    return Readable.from(streamAnswer(answer), { objectMode: false });
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

async function* streamAnswer(answer: EmbeddingAnswer): AsyncGenerator<Buffer> {
  const count = countVectors(answer);
  const mostBytes = mostBytesPerItem(answer);
  const perChunk = Math.max(1, Math.floor(bytesPerChunk / mostBytes));
  yield writeHead(answer);
  for (let from = 0; from < count; from += perChunk) {
    const to = Math.min(count, from + perChunk);
    // A new buffer each time: the socket holds it until it is sent.
    const target = Buffer.allocUnsafe((to - from) * mostBytes);
    yield target.subarray(0, writeItems(answer, from, to, target, 0));
    // A reader that keeps up would else be given everything in this turn, and all others would wait for the end of it.
    await nextTurn();
  }
  yield writeTail(answer);
}

function countVectors({ header, vectors }: EmbeddingAnswer): number {
  return vectors.length / (header.dimensions * 4);
}

/** Of an item all but its vector, with an index of any length and the comma before it. */
const mostBytesAroundVector = 80;

function mostBytesPerItem({ header, format }: EmbeddingAnswer): number {
  const { dimensions } = header;
  const vector = format === 'base64' ? Math.ceil((dimensions * 4) / 3) * 4 : dimensions * maxBytesPerFloat;
  return mostBytesAroundVector + vector;
}

/** @returns where the next byte goes */
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
