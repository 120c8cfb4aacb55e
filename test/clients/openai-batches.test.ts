import test from 'ava';
import OpenAI6, { toFile as toFile6 } from 'openai';
import OpenAI7, { toFile as toFile7 } from 'openai-7';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Files and batches with the official, unmodified OpenAI packages, of both current major versions. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: held-6, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-held-6 }] }
  - { id: held-7, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-held-7 }] }
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
`;

let stack: TestStack;
let vendor: VendorSimulator;

useVendorStack(test, catalogOf, (started) => {
  ({ stack, vendor } = started);
});

/** The calls of version 7 have the types of version 6. */
const packages = [
  { version: 6, OpenAI: OpenAI6, toFile: toFile6 },
  { version: 7, OpenAI: OpenAI7 as unknown as typeof OpenAI6, toFile: toFile7 },
] as const;

const endpoint = '/v1/embeddings';
const completion_window = '24h';
const ended = ['completed', 'failed', 'expired', 'cancelled'];

const embedding = (i: number, model = 'vectors'): object => ({
  custom_id: `line-${i}`,
  method: 'POST',
  url: endpoint,
  body: { model, input: `text ${i}` },
});

const toText = (lines: readonly object[]): string =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('');

interface ResultLine {
  readonly custom_id: string;
  readonly response: { readonly status_code: number; readonly body: OpenAI6.CreateEmbeddingResponse } | null;
}

test('content that is sent without a file name, or under the one that Python gives it, is accepted', async (t) => {
  const { apiKey } = await stack.createAccount();
  for (const [filename, stored] of [
    ['upload', 'upload'],
    ['', 'upload'],
    ['batch input', 'batch input'],
    ['LINES.JSONL', 'LINES.JSONL'],
    ['lines.csv', null],
    ['lines.jsonl.gz', null],
  ] as const) {
    const head = `--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x\r\nContent-Disposition: form-data; name="file"; filename="${filename}"\r\nContent-Type: application/octet-stream\r\n\r\n`;
    const response = await fetch(`${stack.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'multipart/form-data; boundary=x' },
      body: `${head}${toText([embedding(1)])}\r\n--x--\r\n`,
    });
    t.is(response.status, stored === null ? 422 : 200, filename);
    if (stored !== null) t.like(await response.json(), { filename: stored });
  }
});

for (const { version, OpenAI, toFile } of packages) {
  const createClient = async (): Promise<OpenAI6> => {
    const { apiKey } = await stack.createAccount();
    return new OpenAI({ baseURL: `${stack.url}/v1`, apiKey, maxRetries: 0 });
  };

  const upload = async (client: OpenAI6, lines: readonly object[]): Promise<OpenAI6.FileObject> =>
    await client.files.create({
      file: await toFile(Buffer.from(toText(lines)), 'requests.jsonl'),
      purpose: 'batch',
    });

  const waitForEnd = async (client: OpenAI6, id: string): Promise<OpenAI6.Batch> => {
    let batch = await client.batches.retrieve(id);
    await waitFor(
      () => `the batch ${JSON.stringify(batch)}`,
      async () => {
        batch = await client.batches.retrieve(id);
        return ended.includes(batch.status);
      },
    );
    return batch;
  };

  const readLines = async (client: OpenAI6, id: string | undefined): Promise<ResultLine[]> =>
    (await (await client.files.content(id!)).text())
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as ResultLine);

  test(`openai ${version}: a file is uploaded, retrieved, read, listed page by page, and deleted`, async (t) => {
    const client = await createClient();
    const lines = [embedding(1), embedding(2)];
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push((await upload(client, lines)).id);
    const file = await client.files.retrieve(ids[0]!);
    t.like(file, { id: ids[0]!, object: 'file', filename: 'requests.jsonl', purpose: 'batch' });
    t.is(file.bytes, toText(lines).length);
    t.deepEqual(await client.files.waitForProcessing(file.id), file);
    t.is(await (await client.files.content(file.id)).text(), toText(lines));
    const listed: string[] = [];
    for await (const { id } of client.files.list({ limit: 2, purpose: 'batch' })) listed.push(id);
    t.deepEqual(listed, ids.toReversed());
    t.deepEqual(await client.files.delete(file.id), { id: file.id, object: 'file', deleted: true });
    const gone = await t.throwsAsync(client.files.retrieve(file.id));
    t.true(gone instanceof OpenAI.NotFoundError);
  });

  test(`openai ${version}: content that is in memory needs no name`, async (t) => {
    const client = await createClient();
    const content = Buffer.from(toText([embedding(1)]));
    const file = await client.files.create({ file: await toFile(content), purpose: 'batch' });
    const batch = await client.batches.create({ input_file_id: file.id, endpoint, completion_window });
    t.is((await waitForEnd(client, batch.id)).request_counts!.completed, 1);
  });

  test(`openai ${version}: a batch is created, polled and listed, and its results are read and deleted`, async (t) => {
    const client = await createClient();
    const file = await upload(client, [embedding(1), embedding(2), embedding(3, 'no-such-model')]);
    const created = await client.batches.create({
      input_file_id: file.id,
      endpoint,
      completion_window,
      metadata: { dataset: 'articles' },
      output_expires_after: { anchor: 'created_at', seconds: 86_400 },
    });
    t.like(created, { object: 'batch', endpoint, completion_window, input_file_id: file.id, errors: null });
    const batch = await waitForEnd(client, created.id);
    t.like(batch, { status: 'completed', metadata: { dataset: 'articles' } });
    t.deepEqual(batch.request_counts, { total: 3, completed: 2, failed: 1 });
    const output = await readLines(client, batch.output_file_id);
    t.deepEqual(output.map((line) => line.custom_id).toSorted(), ['line-1', 'line-2']);
    t.true(output.every(({ response }) => response!.body.data[0]!.embedding.length === 1_536));
    const [failed] = await readLines(client, batch.error_file_id);
    t.like(failed, { custom_id: 'line-3', response: { status_code: 404 } });
    const second = await client.batches.create({ input_file_id: file.id, endpoint, completion_window });
    const listed: string[] = [];
    for await (const { id } of client.batches.list({ limit: 1 })) listed.push(id);
    t.deepEqual(listed, [second.id, created.id]);
    const results = await client.files.retrieve(batch.output_file_id!);
    t.is(results.purpose, 'batch_output');
    t.is(results.expires_at! - results.created_at, 86_400);
    t.true((await client.files.delete(results.id)).deleted);
  });

  test(`openai ${version}: a cancelled batch ends with its finished lines and all others`, async (t) => {
    const model = `held-${version}`;
    const held = vendor.hold(`gpt-${model}`);
    t.teardown(() => held.end());
    const client = await createClient();
    const body = { model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 };
    const url = '/v1/chat/completions';
    const file = await upload(
      client,
      Array.from({ length: 500 }, (_, i) => ({ custom_id: `line-${i}`, method: 'POST', url, body })),
    );
    const { id } = await client.batches.create({ input_file_id: file.id, endpoint: url, completion_window });
    await waitFor('a running line', () => held.waiting > 0);
    t.is((await client.batches.cancel(id)).status, 'cancelling');
    held.end();
    const batch = await waitForEnd(client, id);
    t.is(batch.status, 'cancelled');
    const output = await readLines(client, batch.output_file_id);
    const errors = await readLines(client, batch.error_file_id);
    t.is(new Set([...output, ...errors].map((line) => line.custom_id)).size, 500);
    t.deepEqual(batch.request_counts, { total: 500, completed: output.length, failed: errors.length });
  });

  test(`openai ${version}: a batch whose file has faults is failed, with their lines`, async (t) => {
    const client = await createClient();
    const file = await upload(client, [embedding(1), embedding(1)]);
    const batch = await client.batches.create({ input_file_id: file.id, endpoint, completion_window });
    t.is(batch.status, 'failed');
    t.like(batch.errors!.data![0], { code: 'duplicate_custom_id', line: 2 });
  });
}
