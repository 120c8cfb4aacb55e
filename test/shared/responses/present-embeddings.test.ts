import { createHash } from 'node:crypto';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import {
  presentEmbeddings,
  type EmbeddingResponseParts,
} from '../../../shared/responses/present-embeddings.ts';
import { sendChunks } from '../../../api/http/responses/send-chunks.ts';
import type { ChunkedBody } from '../../../shared/responses/chunked-body.ts';

function toResponse(
  numbers: Float32Array<ArrayBuffer>,
  dimensions: number,
  format: EmbeddingResponseParts['format'],
): EmbeddingResponseParts {
  return {
    requestId: '019aa2f4-70b3-7d0e-8c44-5e9f0d6a1b27',
    model: 'модель "e5"',
    header: {
      created: 1_763_726_842,
      costNano: '15540',
      free: false,
      durationMs: 12,
      promptTokens: 7,
      dimensions,
    },
    vectors: Buffer.from(numbers.buffer),
    format,
  };
}

/** The same response written by JSON.stringify. */
function stringify({ requestId, model, header, vectors, format }: EmbeddingResponseParts): string {
  const size = header.dimensions * 4;
  const data = Array.from({ length: vectors.length / size }, (_, index) => {
    const vector = vectors.subarray(index * size, (index + 1) * size);
    const numbers = Array.from({ length: header.dimensions }, (__, i) => vector.readFloatLE(i * 4));
    const embedding = format === 'base64' ? vector.toString('base64') : numbers;
    return { object: 'embedding', index, embedding };
  });
  const usage = {
    prompt_tokens: 7,
    total_tokens: 7,
    total_time: 0.012,
    cost_request: 0.00001554,
    free_request: false,
  };
  return JSON.stringify({ id: requestId, created: header.created, object: 'list', model, data, usage });
}

/** Numbers with so few digits that they are written the same as float32 and as double. */
const roundNumbers = (count: number): Float32Array<ArrayBuffer> =>
  Float32Array.from({ length: count }, (_, i) => ((i % 129) - 64) / 64);

/** Numbers with as many digits as in real vectors. */
function oddNumbers(count: number): Float32Array<ArrayBuffer> {
  let state = 1;
  const next = (): number => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) / 2 ** 32;
  return Float32Array.from({ length: count }, () => (next() - 0.5) / 20);
}

async function read(body: Buffer | ChunkedBody): Promise<string> {
  if (Buffer.isBuffer(body)) return body.toString();
  const chunks: Buffer[] = [];
  await sendChunks(collect(chunks), body, nextTurn);
  return Buffer.concat(chunks).toString();
}

/** Copies each chunk, and then overwrites it: a chunk may be reused once its reader has called back. */
const collect = (chunks: Buffer[]): Writable =>
  new Writable({
    write(chunk: Buffer, _, done) {
      chunks.push(Buffer.from(chunk));
      setImmediate(() => {
        chunk.fill('x');
        done();
      });
    },
  });

for (const format of ['float', 'base64'] as const) {
  test(`${format}: a response has the same bytes as from JSON.stringify, whole and in chunks`, async (t) => {
    for (const [count, dimensions] of [
      [1, 1],
      [3, 5],
      [2, 1_536],
      [11, 7],
      [64_000, 1],
      [300, 1_536],
      [2, 65_536],
    ] as const) {
      const response = toResponse(roundNumbers(count * dimensions), dimensions, format);
      const body = presentEmbeddings(response);
      t.is(Buffer.isBuffer(body), response.vectors.length < 256_000, `${count} × ${dimensions}`);
      t.true((await read(body)) === stringify(response), `${count} × ${dimensions}`);
    }
  });
}

test('floats represent the vectors exactly, in fewer than 13 bytes each', async (t) => {
  for (const count of [1, 100]) {
    const numbers = oddNumbers(count * 1_536);
    const text = await read(presentEmbeddings(toResponse(numbers, 1_536, 'float')));
    const { data } = JSON.parse(text) as { data: { embedding: number[] }[] };
    t.deepEqual(Float32Array.from(data.flatMap((item) => item.embedding)), numbers);
    t.true(text.length < numbers.length * 13);
  }
});

const sameVector = oddNumbers(3_072);
const sameVectors = new Float32Array(2_048 * sameVector.length);
for (let at = 0; at < sameVectors.length; at += sameVector.length) sameVectors.set(sameVector, at);
const largest = toResponse(sameVectors, sameVector.length, 'float');

const single = toResponse(sameVector, sameVector.length, 'float');

/** The hash of a response with `count` copies of the only vector in the given response text. */
function hashSameVectors(text: string, count: number): string {
  const [head, rest] = text.split('{"object":"embedding","index":0') as [string, string];
  const end = rest.indexOf('}') + 1;
  const hash = createHash('sha256').update(head);
  for (let index = 0; index < count; index++) {
    hash.update(`${index === 0 ? '' : ','}{"object":"embedding","index":${index}${rest.slice(0, end)}`);
  }
  return hash.update(rest.slice(end)).digest('hex');
}

test('the largest response can be sent through a socket', async (t) => {
  const server = createServer((_, response) => {
    void sendChunks(response, presentEmbeddings(largest) as ChunkedBody, nextTurn);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get({ port, host: '127.0.0.1', agent: false }, resolve).on('error', reject);
  });
  const received = createHash('sha256');
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    received.update(chunk);
    length += chunk.length;
  }
  t.true(length > 70_000_000);
  t.is(received.digest('hex'), hashSameVectors(await read(presentEmbeddings(single)), 2_048));
});

test('chunks are not generated until they are read', async (t) => {
  let written = 0;
  let onFirstChunk = (): void => undefined;
  const firstChunk = new Promise<void>((resolve) => {
    onFirstChunk = resolve;
  });
  const reader = new Writable({
    write(chunk: Buffer) {
      // The callback is never called: this reader accepts no more chunks.
      written += chunk.length;
      onFirstChunk();
    },
  });
  const sent = sendChunks(reader, presentEmbeddings(largest) as ChunkedBody, nextTurn);
  await firstChunk;
  for (let turn = 0; turn < 200; turn++) await nextTurn();
  t.true(written < 300_000);
  t.true(reader.writableLength < 300_000);
  reader.destroy();
  await t.throwsAsync(sent, { message: /disconnected/ });
});

test('even if a reader accepts every chunk immediately, other work gets to run on the event loop', async (t) => {
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  let chunks = 0;
  const reader = new Writable({
    write(chunk: Buffer, _, done) {
      t.true(chunk.length < 300_000);
      chunks += 1;
      done();
    },
  });
  await sendChunks(reader, presentEmbeddings(largest) as ChunkedBody, nextTurn);
  isDone = true;
  t.true(turns >= chunks / 2, `${turns} turns for ${chunks} chunks`);
});
