// Embeds the lines of a text file through a batch, and writes a line with each vector to another file.
//   node dist/examples/embed-file.js examples/household-hints.txt vectors.jsonl
import { once } from 'node:events';
import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { finished } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import type OpenAI from 'openai';
import { createGatewayClient, ExampleError, formatReceipt, runExample } from './gateway-client.ts';
import { ProgressBar } from './progress-bar.ts';

const usage = 'Usage: embed-file <file> <vectors.jsonl> [--model use-lite-en-512] [--batch batch_…]';
/** A batch has at most this many lines. */
const maxLines = 50_000;
const pollMs = 1_000;

/** What the gateway adds to OpenAI's batch. */
type Batch = OpenAI.Batch & {
  readonly cost: number;
  /** The output file, which can be read while the batch runs. */
  readonly partial_output_file_id: string | null;
};

/** A line of the output file. OpenAI's types do not include it. */
interface OutputLine {
  readonly custom_id: string;
  readonly response: { readonly body: OpenAI.CreateEmbeddingResponse };
}

/** A line of the error file. `response` is null if the line was not run. */
interface ErrorLine {
  readonly custom_id: string;
  readonly response: { readonly body: { readonly error: { readonly message: string } } } | null;
  readonly error: { readonly message: string } | null;
}

await runExample(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { model: { type: 'string', default: 'use-lite-en-512' }, batch: { type: 'string' } },
  });
  const [file, target] = positionals;
  if (file === undefined || target === undefined || positionals.length > 2) throw new ExampleError(usage);
  const client = createGatewayClient(process.env);
  const id = values.batch ?? (await createBatch(client, file, values.model)).id;
  // The batch runs without this program. If it is stopped, --batch continues where the batch is by then.
  process.stderr.write(`${id}\n`);
  const batch = await writeVectors(client, id, file, target);
  const { completed, failed } = batch.request_counts!;
  if (completed > 0) process.stdout.write(`${target}\n`);
  process.stderr.write(`${completed} lines embedded for ${formatReceipt({ cost_request: batch.cost })}\n`);
  if (failed > 0) await reportFailed(client, batch, failed);
});

/** Uploads a request for each line of the file, and creates a batch of them. A line's number is its `custom_id`. */
async function createBatch(client: OpenAI, file: string, model: string): Promise<OpenAI.Batch> {
  const folder = await mkdtemp(join(tmpdir(), 'embed-file-'));
  try {
    const path = join(folder, 'requests.jsonl');
    const lines = await writeRequests(file, path, model);
    if (lines === 0) throw new ExampleError(`${file} has no lines to embed.`);
    if (lines > maxLines) throw new ExampleError(`${file} has more than ${maxLines} lines: split it.`);
    const input = await client.files.create({ file: createReadStream(path), purpose: 'batch' });
    return await client.batches.create({
      input_file_id: input.id,
      endpoint: '/v1/embeddings',
      completion_window: '24h',
      metadata: { file },
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function writeRequests(file: string, path: string, model: string): Promise<number> {
  const requests = createWriteStream(path);
  let lines = 0;
  for await (const [number, text] of readTexts(file)) {
    lines += 1;
    const body = { model, input: text, encoding_format: 'float' };
    const request = { custom_id: String(number), method: 'POST', url: '/v1/embeddings', body };
    if (!requests.write(`${JSON.stringify(request)}\n`)) await once(requests, 'drain');
  }
  requests.end();
  await finished(requests);
  return lines;
}

/** Yields the lines that are not blank, with their numbers from 1. */
async function* readTexts(file: string): AsyncGenerator<[number: number, text: string]> {
  let number = 0;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    number += 1;
    const text = line.trim();
    if (text !== '') yield [number, text];
  }
}

/** Writes each vector as soon as the batch has it. The output file only ever grows, so its new bytes are enough. */
async function writeVectors(client: OpenAI, id: string, file: string, target: string): Promise<Batch> {
  const texts = new Map<number, string>();
  for await (const [number, text] of readTexts(file)) texts.set(number, text);
  // Opened with the first vector: a file of an earlier run is kept if this one embeds nothing.
  let vectors: WriteStream | null = null;
  const bar = new ProgressBar(process.stderr, 'Embedding', texts.size);
  const readNew = createOutputReader(client);
  let done = 0;
  try {
    for (;;) {
      const batch = (await client.batches.retrieve(id)) as Batch;
      const hasEnded = ['completed', 'failed', 'expired', 'cancelled'].includes(batch.status);
      for await (const { custom_id, response } of readNew(batch.partial_output_file_id)) {
        const line = Number(custom_id);
        const vector = { line, text: texts.get(line), embedding: response.body.data[0]!.embedding };
        vectors ??= createWriteStream(target);
        if (!vectors.write(`${JSON.stringify(vector)}\n`)) await once(vectors, 'drain');
      }
      const { completed = 0, failed = 0 } = batch.request_counts ?? {};
      bar.advance(completed + failed - done);
      done = completed + failed;
      if (batch.status === 'failed')
        throw new ExampleError(batch.errors?.data?.[0]?.message ?? 'The batch failed.');
      if (hasEnded) return batch;
      await delay(pollMs);
    }
  } finally {
    bar.end();
    if (vectors !== null) {
      vectors.end();
      await finished(vectors);
    }
  }
}

/** Returns a function that yields the lines which a growing file has got since its last call. */
function createOutputReader(client: OpenAI): (fileId: string | null) => AsyncGenerator<OutputLine> {
  let offset = 0;
  return async function* readNew(fileId) {
    if (fileId === null) return;
    const { bytes } = await client.files.retrieve(fileId);
    if (bytes <= offset) return;
    // At any time, the file ends with a whole line.
    const headers = { range: `bytes=${offset}-${bytes - 1}` };
    offset = bytes;
    const { body } = await client.files.content(fileId, { headers });
    let rest = '';
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop()!;
      for (const line of lines) yield JSON.parse(line) as OutputLine;
    }
  };
}

/** Prints the first error. All of them are in the batch's error file. */
async function reportFailed(client: OpenAI, batch: Batch, failed: number): Promise<void> {
  const content = await client.files.content(batch.error_file_id!);
  const { custom_id, response, error } = JSON.parse((await content.text()).split('\n')[0]!) as ErrorLine;
  const message = error?.message ?? response?.body.error.message;
  throw new ExampleError(`${failed} lines failed, such as line ${custom_id}: ${message}`);
}
