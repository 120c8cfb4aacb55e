import test from 'ava';
import OpenAI, { toFile } from 'openai';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Batches as their callers use them: with the official SDK, from a file or sent at once. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: slow-chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-held }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: picture, type: image, context: 8192, size: [256x256, 1024x1024], max_image_count: 4, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: img }] }
`;

let stack: TestStack;
export let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

interface Line {
  readonly custom_id: string;
  readonly method?: string;
  readonly url?: string;
  readonly body: object;
}

interface ResultLine {
  readonly id: string;
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly request_id: string;
    readonly body: Record<string, unknown>;
  } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

type Batch = OpenAI.Batch & {
  readonly cost: number;
  readonly reserved: number;
  readonly partial_output_file_id: string | null;
  readonly partial_error_file_id: string | null;
};

const clientOf = ({ apiKey }: TestAccount): OpenAI =>
  new OpenAI({ baseURL: `${stack.url}/v1`, apiKey, maxRetries: 0 });

async function upload(client: OpenAI, lines: readonly Line[]): Promise<string> {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), 'lines.jsonl'),
    purpose: 'batch',
  });
  return file.id;
}

const hasEnded = ({ status }: Batch): boolean =>
  ['completed', 'failed', 'expired', 'cancelled'].includes(status);

async function waitForBatch(
  client: OpenAI,
  id: string,
  isReached: (batch: Batch) => boolean = hasEnded,
): Promise<Batch> {
  let batch = (await client.batches.retrieve(id)) as Batch;
  await waitFor(() => `the batch ${JSON.stringify(batch)}`, async () => {
      batch = (await client.batches.retrieve(id)) as Batch;
      return isReached(batch);
  });
  return batch;
}

async function readLines(client: OpenAI, fileId: string | null | undefined): Promise<ResultLine[]> {
  if (fileId === null || fileId === undefined) return [];
  const text = await (await client.files.content(fileId)).text();
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ResultLine);
}

const embeddingLine = (i: number, body: object = {}): Line => ({
  custom_id: `line-${i}`,
  method: 'POST',
  url: '/v1/embeddings',
  body: { model: 'vectors', input: `text ${i}`, ...body },
});

const count = (length: number) => Array.from({ length }, (_, i) => i);

test('embeddings of a file are in the output file, once each, and are charged like single requests', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const single = (await client.embeddings.create({
    model: 'vectors',
    input: 'text 7',
    encoding_format: 'float',
  })) as OpenAI.CreateEmbeddingResponse & {
    usage: { cost_request: number };
  };
  const input = await upload(
    client,
    count(300).map((i) => embeddingLine(i)),
  );
  const created = (await client.batches.create({
    input_file_id: input,
    endpoint: '/v1/embeddings',
    completion_window: '24h',
    metadata: { dataset: 'articles' },
  })) as Batch;
  t.is(created.object, 'batch');
  t.true(['validating', 'in_progress'].includes(created.status));
  t.is(created.output_file_id ?? null, null);
  const batch = await waitForBatch(client, created.id);
  t.like(batch, {
    status: 'completed',
    request_counts: { total: 300, completed: 300, failed: 0 },
    reserved: 0,
    metadata: { dataset: 'articles' },
  });
  const lines = await readLines(client, batch.output_file_id);
  t.deepEqual(new Set(lines.map((line) => line.custom_id)), new Set(count(300).map((i) => `line-${i}`)));
  t.is(lines.length, 300);
  const seventh = lines.find((line) => line.custom_id === 'line-7')!;
  t.is(seventh.error, null);
  t.is(seventh.response!.status_code, 200);
  t.deepEqual(seventh.response!.body['data'], single.data);
  t.is((seventh.response!.body['usage'] as { cost_request: number }).cost_request, single.usage.cost_request);
  const sum = lines.reduce(
    (total, line) => total + (line.response!.body['usage'] as { cost_request: number }).cost_request,
    0,
  );
  t.true(Math.abs(batch.cost - sum) < 1e-9);
  t.is(batch.error_file_id ?? null, null);
});
