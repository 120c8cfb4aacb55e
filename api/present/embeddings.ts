import { Readable } from 'node:stream';
import type { EmbeddingResultHeader } from '../../shared/reply/result.ts';
import { toRubNumber } from '../../shared/pricing/money.ts';

/** Below this a whole answer is one string; above it, vectors are written as the socket takes them. */
const streamFromBytes = 256_000;

export interface EmbeddingAnswer {
  readonly requestId: string;
  readonly model: string;
  readonly header: EmbeddingResultHeader;
  /** Float32, little-endian, one vector after the other. */
  readonly vectors: Buffer;
  readonly format: 'float' | 'base64';
}

/** The JSON of an embedding answer. The vectors stay bytes: base64 of them is written as it is. */
export function presentEmbeddings(answer: EmbeddingAnswer): string | Readable {
  const pieces = writePieces(answer);
  if (answer.vectors.length < streamFromBytes) return [...pieces].join('');
  return Readable.from(pieces, { objectMode: false });
}

function* writePieces({ requestId, model, header, vectors, format }: EmbeddingAnswer): Generator<string> {
  const { dimensions, promptTokens } = header;
  const size = dimensions * 4;
  const head = { id: requestId, created: header.created, object: 'list', model };
  yield `${JSON.stringify(head).slice(0, -1)},"data":[`;
  for (let at = 0, index = 0; at < vectors.length; at += size, index++) {
    const vector = vectors.subarray(at, at + size);
    const embedding = format === 'base64' ? `"${vector.toString('base64')}"` : writeFloats(vector);
    yield `${index === 0 ? '' : ','}{"object":"embedding","index":${index},"embedding":${embedding}}`;
  }
  const usage = {
    prompt_tokens: promptTokens,
    total_tokens: promptTokens,
    total_time: header.durationMs / 1_000,
    cost_request: toRubNumber(BigInt(header.costNano)),
    free_request: header.free,
  };
  yield `],"usage":${JSON.stringify(usage)}}`;
}

function writeFloats(vector: Buffer): string {
  const numbers: number[] = [];
  for (let at = 0; at < vector.length; at += 4) numbers.push(vector.readFloatLE(at));
  return JSON.stringify(numbers);
}
