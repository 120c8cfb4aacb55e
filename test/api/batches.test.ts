import test from 'ava';
import OpenAI, { toFile } from 'openai';
import type { VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { redisKeys, shardOf } from '../../shared/platform/redis/redis-keys.ts';
import { parseFileName } from '../../shared/platform/storage/file-name.ts';
import { ObjectStore } from '../../shared/platform/storage/object-store.ts';
import { FileStore } from '../../shared/work/files/file-store.ts';
import { makeZip } from '../support/make-zip.ts';
import type { TestAccount, TestStack } from '../support/stack.ts';
import { toNano } from '../support/observe.ts';
import { useVendorStack } from '../support/vendor-stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Batches as their callers use them: with the official SDK, from a file or sent at once. */

/** Each test that holds calls has a model of its own. */
const heldChats = ['read-early', 'cancelled', 'expired', 'deleted-input', 'flaky'] as const;

const catalogOf = (vendorUrl: string): string => `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123456789] }
models:
  - { id: chat, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: builtin, model: demo-echo }] }
${heldChats.map((model) => `  - { id: ${model}, type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }, routes: [{ upstream: vendor, model: gpt-${model} }] }`).join('\n')}
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7000 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: other-vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 9000 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: picture, type: image, context: 8192, size: [256x256, 1024x1024], max_image_count: 4, pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: img }] }
`;

let stack: TestStack;
let vendor: VendorSimulator;

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
  await waitFor(
    () => `the batch ${JSON.stringify(batch)}`,
    async () => {
      batch = (await client.batches.retrieve(id)) as Batch;
      return isReached(batch);
    },
  );
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
  const single = await client.embeddings.create({
    model: 'vectors',
    input: 'text 7',
    encoding_format: 'float',
  });
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
  // Their order is not that of the input, and a comparison of sets would compare it.
  t.deepEqual(
    lines.map((line) => line.custom_id).toSorted(),
    count(300)
      .map((i) => `line-${i}`)
      .toSorted(),
  );
  const seventh = lines.find((line) => line.custom_id === 'line-7')!;
  t.is(seventh.error, null);
  t.is(seventh.response!.status_code, 200);
  t.deepEqual(seventh.response!.body['data'], single.data);
  const sum = lines.reduce(
    (total, line) => total + (line.response!.body['usage'] as { cost_request: number }).cost_request,
    0,
  );
  t.true(Math.abs(batch.cost - sum) < 1e-9);
  t.is(batch.error_file_id ?? null, null);
});

type Options = Partial<OpenAI.BatchCreateParams> & { readonly max_cost?: number };

async function createBatch(client: OpenAI, lines: readonly Line[], options: Options = {}): Promise<Batch> {
  const endpoint = options.endpoint ?? '/v1/embeddings';
  return (await client.batches.create({
    input_file_id: await upload(client, lines),
    completion_window: '24h',
    ...options,
    endpoint,
  })) as Batch;
}

async function createFromContent(client: OpenAI, content: string | Buffer): Promise<Batch> {
  const file = await toFile(Buffer.from(content), 'lines.jsonl');
  const { id: input_file_id } = await client.files.create({ file, purpose: 'batch' });
  const options = { input_file_id, endpoint: '/v1/embeddings', completion_window: '24h' } as const;
  return (await client.batches.create(options)) as Batch;
}

/** Sends requests with the batch instead of a file. */
const createInline = async (client: OpenAI, endpoint: string, requests: readonly Line[], rest: object = {}) =>
  await client.post<Batch>('/batches', {
    body: { endpoint, completion_window: '24h', requests, ...rest },
  });

const byId = (lines: readonly ResultLine[]): Map<string, ResultLine> =>
  new Map(lines.map((line) => [line.custom_id, line]));

test('chats that are sent with the batch run, and each gets the response of a single request', async (t) => {
  const client = clientOf(await stack.createAccount());
  const ask = (content: string) => ({ model: 'chat', messages: [{ role: 'user', content }] as const });
  const { id } = await createInline(client, '/v1/chat/completions', [
    { custom_id: 'first', body: ask('one two') },
    { custom_id: 'second', body: { ...ask('three'), n: 2, max_tokens: 20 } },
  ]);
  const batch = await waitForBatch(client, id);
  t.like(batch, { status: 'completed', request_counts: { total: 2, completed: 2, failed: 0 } });
  const lines = byId(await readLines(client, batch.output_file_id));
  const first = lines.get('first')!.response!.body as unknown as OpenAI.ChatCompletion;
  t.is(first.object, 'chat.completion');
  t.true(first.choices[0]!.message.content!.includes('one two'));
  const second = lines.get('second')!.response!.body as unknown as OpenAI.ChatCompletion;
  t.is(second.choices.length, 2);
  t.is(batch.usage!.total_tokens, first.usage!.total_tokens + second.usage!.total_tokens);
  const input = await client.files.retrieve(batch.input_file_id);
  t.is(input.purpose, 'batch');
});

test('images are links that live as long as the output file', async (t) => {
  const client = clientOf(await stack.createAccount());
  const body = { model: 'picture', prompt: 'a lighthouse', size: '256x256' };
  const lines = [
    { custom_id: 'one', body },
    { custom_id: 'two', body: { ...body, n: 2 } },
    { custom_id: 'base64', body: { ...body, response_format: 'b64_json' } },
  ];
  const output_expires_after = { anchor: 'created_at', seconds: 172_800 };
  const { id } = await createInline(client, '/v1/images/generations', lines, { output_expires_after });
  const batch = await waitForBatch(client, id);
  t.like(batch, { status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } });
  t.is(batch.cost, 4.5);
  const results = await readLines(client, batch.output_file_id);
  const images = results.flatMap((line) => line.response!.body['data'] as { url: string; b64_json: null }[]);
  t.is(images.length, 3);
  const output = await client.files.retrieve(batch.output_file_id!);
  t.is(output.expires_at! - output.created_at, 172_800);
  for (const { url } of images) {
    const { dueAtMs } = parseFileName(url.slice(url.lastIndexOf('/') + 1))!;
    t.true(dueAtMs! >= output.expires_at! * 1_000);
    const response = await fetch(url);
    t.is(response.status, 200);
    t.is(response.headers.get('content-type'), 'image/png');
    t.true(Number(/max-age=(\d+)/.exec(response.headers.get('cache-control')!)![1]) > 0);
  }
  const [failed] = await readLines(client, batch.error_file_id);
  t.is(failed!.custom_id, 'base64');
  t.is(failed!.response!.status_code, 422);
});

test('a line that a single request could not send gets its error, and the others run', async (t) => {
  const client = clientOf(await stack.createAccount());
  const batch = await createBatch(client, [
    embeddingLine(0),
    embeddingLine(1, { stream: true }),
    embeddingLine(2, { model: 'no-such-model' }),
    embeddingLine(3, { model: 'chat' }),
    embeddingLine(4, { input: '' }),
    embeddingLine(5, { dimensions: 3 }),
    embeddingLine(6),
  ]);
  const ended = await waitForBatch(client, batch.id);
  t.like(ended, { status: 'completed', request_counts: { total: 7, completed: 2, failed: 5 } });
  const output = await readLines(client, ended.output_file_id);
  t.deepEqual(output.map((line) => line.custom_id).sort(), ['line-0', 'line-6']);
  const errors = byId(await readLines(client, ended.error_file_id));
  const statuses = count(5).map((i) => errors.get(`line-${i + 1}`)!.response!.status_code);
  t.deepEqual(statuses, [422, 404, 422, 422, 422]);
  const missing = errors.get('line-2')!;
  t.is(missing.error, null);
  t.is((missing.response!.body['error'] as { code: string }).code, 'model_not_found');
});

test('one batch may name several models', async (t) => {
  const client = clientOf(await stack.createAccount());
  const batch = await createBatch(client, [
    ...count(20).map((i) => embeddingLine(i)),
    ...count(10).map((i) => embeddingLine(100 + i, { model: 'other-vectors' })),
  ]);
  t.like(batch, { model: 'vectors' });
  const ended = await waitForBatch(client, batch.id);
  t.is(ended.request_counts!.completed, 30);
  const lines = byId(await readLines(client, ended.output_file_id));
  t.is(lines.get('line-105')!.response!.body['model'], 'other-vectors');
  t.is(lines.get('line-5')!.response!.body['model'], 'vectors');
});

test('a line whose body is larger than a single request may be fails with 413, and the others run', async (t) => {
  const client = clientOf(await stack.createAccount());
  const ask = (content: string) => ({ model: 'chat', messages: [{ role: 'user', content }] });
  const batch = await createBatch(
    client,
    [
      { custom_id: 'first', body: ask('one') },
      { custom_id: 'too-large', body: ask('word '.repeat(6_500_000)) },
      { custom_id: 'last', body: ask('two') },
    ],
    { endpoint: '/v1/chat/completions', max_cost: 1 },
  );
  const ended = await waitForBatch(client, batch.id);
  t.like(ended, { status: 'completed', request_counts: { total: 3, completed: 2, failed: 1 } });
  const [failed] = await readLines(client, ended.error_file_id);
  t.like(failed, { custom_id: 'too-large', error: null, response: { status_code: 413 } });
  t.like(failed!.response!.body, { error: { code: 'payload_too_large' } });
});

test('each line of an output file has the encoding that its request asks for', async (t) => {
  const client = clientOf(await stack.createAccount());
  const formats = [undefined, 'float', 'base64'];
  const { id } = await createBatch(
    client,
    formats.map((encoding_format, i) => embeddingLine(i, { input: 'the same text', encoding_format })),
  );
  const ended = await waitForBatch(client, id);
  const lines = byId(await readLines(client, ended.output_file_id));
  const [byDefault, floats, base64] = count(3).map((i) => {
    const { data } = lines.get(`line-${i}`)!.response!.body as unknown as {
      readonly data: readonly { readonly embedding: number[] | string }[];
    };
    return data[0]!.embedding;
  });
  t.true(Array.isArray(floats));
  t.deepEqual(byDefault, floats);
  const bytes = Buffer.from(Float32Array.from(floats as number[]).buffer);
  t.is(base64, bytes.toString('base64'));
});

const faulty: readonly (readonly [
  name: string,
  content: string | Buffer,
  code: string,
  line: number | null,
])[] = [
  [
    'a duplicate custom_id',
    [embeddingLine(1), embeddingLine(2), embeddingLine(1)].map((line) => JSON.stringify(line)).join('\n'),
    'duplicate_custom_id',
    3,
  ],
  [
    'a line of another URL',
    [embeddingLine(1), { ...embeddingLine(2), url: '/v1/chat/completions' }]
      .map((line) => JSON.stringify(line))
      .join('\n'),
    'url_mismatch',
    2,
  ],
  ['a line that is not JSON', `${JSON.stringify(embeddingLine(1))}\n{"custom_id": `, 'invalid_json_line', 2],
  ['no line', '\n\n', 'empty_file', null],
  [
    'a zip archive with the name of a JSONL file',
    makeZip({ 'lines.jsonl': Buffer.from(JSON.stringify(embeddingLine(1))) }),
    'invalid_json_line',
    1,
  ],
];

for (const [name, content, code, line] of faulty) {
  test(`${name}: the batch fails at once, and says where`, async (t) => {
    const client = clientOf(await stack.createAccount());
    const batch = await createFromContent(client, content);
    t.is(batch.status, 'failed');
    t.truthy(batch.failed_at);
    t.like(batch.errors!.data![0], { code, line });
    t.deepEqual((await client.batches.retrieve(batch.id)).errors, batch.errors);
  });
}

test('a fault in line 49,999 of 50,000 fails the batch at once, and nothing is charged', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const lines = count(50_000).map((i) => Buffer.from(`${JSON.stringify(embeddingLine(i))}\n`));
  lines[49_997] = lines[49_997]!.subarray(1);
  // A byte that UTF-8 does not have.
  lines[49_998]![lines[49_998]!.indexOf('text')] = 0xff;
  const batch = await createFromContent(client, Buffer.concat(lines));
  t.like(batch, { status: 'failed', cost: 0, reserved: 0, request_counts: { total: 50_000, completed: 0 } });
  t.deepEqual(
    batch.errors!.data!.map((fault) => [fault.code, fault.line]),
    [
      ['invalid_json_line', 49_998],
      ['invalid_json_line', 49_999],
    ],
  );
  t.is((await stack.readAccount(account.id)).reservedNano, 0n);
});

test('what is finished can be read while the batch runs, and the file ids appear with its end', async (t) => {
  const held = vendor.hold('gpt-read-early');
  t.teardown(() => held.end());
  const client = clientOf(await stack.createAccount());
  const ask = (model: string) => ({ model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 });
  const { id } = await createInline(client, '/v1/chat/completions', [
    { custom_id: 'quick', body: ask('chat') },
    { custom_id: 'slow', body: ask('read-early') },
  ]);
  const running = await waitForBatch(client, id, ({ request_counts: counts }) => counts!.completed === 1);
  t.is(running.status, 'in_progress');
  t.is(running.output_file_id ?? null, null);
  t.true(running.reserved > 0);
  const content = await client.files.content(running.partial_output_file_id!);
  t.is(content.headers.get('x-incomplete'), 'true');
  const text = await content.text();
  t.like(JSON.parse(text), { custom_id: 'quick' });
  held.end();
  const ended = await waitForBatch(client, id);
  t.is(ended.output_file_id, running.partial_output_file_id!);
  const rest = await client.files.content(ended.output_file_id!, {
    headers: { range: `bytes=${Buffer.byteLength(text)}-` },
  });
  t.is(rest.status, 206);
  t.is(rest.headers.get('x-incomplete'), null);
  t.like(JSON.parse(await rest.text()), { custom_id: 'slow' });
});

test('cancelling lets running lines end, keeps finished results, and lists all other lines as cancelled', async (t) => {
  const held = vendor.hold('gpt-cancelled');
  t.teardown(() => held.end());
  const account = await stack.createAccount();
  const client = clientOf(account);
  const body = { model: 'cancelled', messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 };
  const lines = count(2_000).map((i) => ({ custom_id: `line-${i}`, body }));
  const { id } = await createInline(client, '/v1/chat/completions', lines);
  await waitFor('a running line', () => held.waiting > 0);
  const cancelling = await client.batches.cancel(id);
  t.is(cancelling.status, 'cancelling');
  held.end();
  const ended = await waitForBatch(client, id);
  t.is(ended.status, 'cancelled');
  t.truthy(ended.cancelled_at);
  t.is(ended.reserved, 0);
  const { completed, failed } = ended.request_counts!;
  t.is(completed + failed, 2_000);
  t.true(completed > 0);
  t.like(ended, { lines_not_run: failed });
  const [output, errors] = [
    await readLines(client, ended.output_file_id),
    await readLines(client, ended.error_file_id),
  ];
  t.is(output.length, completed);
  t.is(new Set([...output, ...errors].map((line) => line.custom_id)).size, 2_000);
  t.true(errors.every((line) => line.response === null && line.error!.code === 'batch_cancelled'));
  t.deepEqual(await client.batches.cancel(id), { ...ended });
});

test('when the window of a batch ends, lines that have not run are listed as expired and cost nothing', async (t) => {
  const held = vendor.hold('gpt-expired');
  t.teardown(() => held.end());
  const account = await stack.createAccount({ balance: '100' });
  const client = clientOf(account);
  const body = { model: 'expired', messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 };
  const lines = count(1_000).map((i) => ({ custom_id: `line-${i}`, body }));
  const { id } = await createInline(client, '/v1/chat/completions', lines);
  await waitFor('a running line', () => held.waiting > 0);
  await stack.redis.zadd(redisKeys.batchWindows(shardOf(account.id)), 'XX', 1, `${account.id} ${id}`);
  await waitForBatch(client, id, ({ status }) => status === 'finalizing');
  held.end();
  const ended = await waitForBatch(client, id);
  t.like(ended, { status: 'expired', reserved: 0 });
  t.truthy(ended.expired_at);
  const [output, errors] = [
    await readLines(client, ended.output_file_id),
    await readLines(client, ended.error_file_id),
  ];
  t.deepEqual(ended.request_counts, { total: 1_000, completed: output.length, failed: errors.length });
  t.true(output.length > 0 && errors.length > 0);
  t.true(errors.every((line) => line.response === null && line.error!.code === 'batch_expired'));
  const ids = [...output, ...errors].map((line) => line.custom_id);
  t.deepEqual(ids.toSorted(), lines.map((line) => line.custom_id).toSorted());
  const { balanceNano, reservedNano } = await stack.readAccount(account.id);
  t.is(reservedNano, 0n);
  t.is(100_000_000_000n - balanceNano, toNano(ended.cost));
});

test('when the maximum cost is reached, the remaining lines are listed as not paid, and the batch is completed', async (t) => {
  const client = clientOf(await stack.createAccount());
  const body = { model: 'picture', prompt: 'a lighthouse', size: '256x256' };
  const lines = count(10).map((i) => ({ custom_id: `line-${i}`, body }));
  const { id } = await createInline(client, '/v1/images/generations', lines, { max_cost: 4 });
  const ended = await waitForBatch(client, id);
  t.like(ended, { status: 'completed', cost: 3, request_counts: { total: 10, completed: 2, failed: 8 } });
  const errors = await readLines(client, ended.error_file_id);
  t.true(errors.every((line) => line.error!.code === 'insufficient_balance'));
});

test('a batch whose estimate exceeds the balance is rejected, unless it has a maximum cost', async (t) => {
  const account = await stack.createAccount({ balance: '4' });
  const client = clientOf(account);
  const body = { model: 'picture', prompt: 'a lighthouse', size: '256x256' };
  const lines = count(10).map((i) => ({ custom_id: `line-${i}`, body }));
  const rejected = await t.throwsAsync(createInline(client, '/v1/images/generations', lines));
  t.is((rejected as { status?: number }).status, 402);
  const { id } = await createInline(client, '/v1/images/generations', lines, { max_cost: 100 });
  const ended = await waitForBatch(client, id);
  t.like(ended, { status: 'completed', cost: 3, request_counts: { completed: 2, failed: 8 } });
});

test('a retry is a new batch of the failed lines', async (t) => {
  const client = clientOf(await stack.createAccount());
  const batch = await createBatch(client, [
    embeddingLine(0),
    embeddingLine(1, { model: 'no-such-model' }),
    embeddingLine(2, { model: 'no-such-model' }),
  ]);
  await waitForBatch(client, batch.id);
  const retried = await client.post<Batch>(`/batches/${batch.id}/retry`);
  t.not(retried.id, batch.id);
  const ended = await waitForBatch(client, retried.id);
  t.like(ended, { request_counts: { total: 2, completed: 0, failed: 2 }, status: 'completed' });
  t.is(ended.output_file_id ?? null, null);
  const errors = await readLines(client, ended.error_file_id);
  t.deepEqual(errors.map((line) => line.custom_id).sort(), ['line-1', 'line-2']);
});

test('a batch is retried once, so that a repeated call does not pay for its lines twice', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const { id } = await createBatch(client, [embeddingLine(0, { model: 'no-such-model' })]);
  await waitForBatch(client, id);
  // The files of other tests may take the memory for bodies for a while, which is a 503.
  const maxRetries = 8;
  const retry = (batch: string, key?: string): Promise<Batch> =>
    client.post<Batch>(`/batches/${batch}/retry`, {
      maxRetries,
      ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
    });
  const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => retry(id, 'same')));
  const ids = outcomes.map((one) => (one.status === 'fulfilled' ? one.value.id : String(one.reason)));
  t.is(new Set(ids).size, 1, ids.join(', '));
  const [first] = ids;
  for (const key of [undefined, 'another']) {
    const error = await t.throwsAsync<InstanceType<typeof OpenAI.APIError>>(retry(id, key));
    t.is(error.status, 422);
    t.true(error.message.includes(first!), error.message);
  }
  await waitForBatch(client, first!);
  t.not((await retry(first!)).id, first);
  const inputs = () => client.files.list({ purpose: 'batch' });
  // The input of a batch that was not created is deleted in the background.
  await waitFor('the input of each batch, and no other', async () => (await inputs()).data.length === 3);
});

test('a line that is too long has its own custom_id in the error file, and is retried', async (t) => {
  const client = clientOf(await stack.createAccount());
  const url = '/v1/chat/completions';
  // Its tokens are not counted.
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(33_000_000)}` } };
  const long = { model: 'chat', custom_id: 'nested', messages: [{ role: 'user', content: [image] }] };
  const short = { model: 'chat', messages: [{ role: 'user', content: 'hi' }], max_tokens: 10 };
  // The id follows the body.
  const text = [
    { body: long, custom_id: 'long' },
    { custom_id: 'nested', body: short },
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join('');
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), 'lines.jsonl'),
    purpose: 'batch',
  });
  const created = await client.batches.create({
    input_file_id: file.id,
    endpoint: url,
    completion_window: '24h',
  });
  const isRight = async (batch: Batch, succeeded: readonly string[]): Promise<void> => {
    const ids = (await readLines(client, batch.output_file_id)).map((line) => line.custom_id);
    t.deepEqual(ids, succeeded);
    const errors = await readLines(client, batch.error_file_id);
    t.deepEqual(
      errors.map((line) => [line.custom_id, line.response?.status_code]),
      [['long', 413]],
    );
  };
  await isRight(await waitForBatch(client, created.id), ['nested']);
  const retry = await client.post<Batch>(`/batches/${created.id}/retry`);
  await isRight(await waitForBatch(client, retry.id), []);
});

test('a batch that is not created leaves no file of its lines', async (t) => {
  const account = await stack.createAccount({ balance: '4' });
  const client = clientOf(account);
  const body = { model: 'picture', prompt: 'a lighthouse', size: '256x256' };
  const lines = count(10).map((i) => ({ custom_id: `line-${i}`, body }));
  const rejected = await t.throwsAsync(createInline(client, '/v1/images/generations', lines));
  t.is((rejected as { status?: number }).status, 402);
  await waitFor('the file to be deleted', async () => (await client.files.list()).data.length === 0);
  const create = async () =>
    await client.post<Batch>('/batches', {
      body: {
        endpoint: '/v1/images/generations',
        completion_window: '24h',
        requests: lines.slice(0, 1),
      },
      headers: { 'idempotency-key': 'one-batch-of-lines' },
    });
  const [first, second] = [await create(), await create()];
  t.is(first.id, second.id);
  const inputs = async () => (await client.files.list({ purpose: 'batch' })).data.map(({ id }) => id);
  await waitFor('one file to be left', async () => (await inputs()).length === 1);
  t.deepEqual(await inputs(), [first.input_file_id]);
});

test('the same Idempotency-Key creates one batch', async (t) => {
  const client = clientOf(await stack.createAccount());
  const input_file_id = await upload(client, [embeddingLine(0)]);
  const create = async () =>
    await client.batches.create(
      { input_file_id, endpoint: '/v1/embeddings', completion_window: '24h' },
      { headers: { 'idempotency-key': 'one-batch' } },
    );
  const [first, second] = await Promise.all([create(), create()]);
  t.is(first.id, second.id);
  t.is((await client.batches.list()).data.length, 1);
});

test('X-Webhook-Url names the receiver of a batch’s event, also if the batch fails at once', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const url = 'https://receiver.test/hook';
  const options = { headers: { 'x-webhook-url': url } };
  const body = { endpoint: '/v1/embeddings', completion_window: '24h' };
  const twice = [embeddingLine(0), embeddingLine(0)];
  for (const [requests, status] of [
    [[embeddingLine(0)], 'completed'],
    [twice, 'failed'],
  ] as const) {
    const { id } = await client.post<Batch>('/batches', { body: { ...body, requests }, ...options });
    t.is((await waitForBatch(client, id)).status, status);
    t.is(await stack.redis.hget(redisKeys.batch(account.id, id), 'url'), url);
    const hooks = redisKeys.batchHooks(shardOf(account.id));
    await waitFor(
      'the webhook to be queued',
      async () => (await stack.redis.zscore(hooks, `${account.id} ${id}`)) === null,
    );
  }
  const headers = { 'x-webhook-url': 'http://127.0.0.1/hook' };
  const refused = client.post('/batches', { body: { ...body, requests: twice }, headers });
  t.is(((await t.throwsAsync(refused)) as { code?: string }).code, 'unsafe_url');
});

test('repeated requests leave no input behind, and a batch that is refused does not either', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const body = { endpoint: '/v1/embeddings', completion_window: '24h', requests: [embeddingLine(0)] };
  const create = async () =>
    await client.post<Batch>('/batches', { body, headers: { 'idempotency-key': 'one-input' } });
  const [first, second] = await Promise.all([create(), create()]);
  t.is(first.id, second.id);
  const poor = clientOf(await stack.createAccount({ balance: '0.000000001' }));
  const refused = poor.post('/batches', { body });
  t.is(((await t.throwsAsync(refused)) as { status?: number }).status, 402);
  t.deepEqual((await poor.files.list()).data, []);
  await waitForBatch(client, first.id);
  const inputs = (await client.files.list({ purpose: 'batch' })).data;
  t.deepEqual(
    inputs.map(({ id }) => id),
    [first.input_file_id],
  );
});

test('batches are listed page by page, and those of another account do not exist', async (t) => {
  const client = clientOf(await stack.createAccount());
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push((await createBatch(client, [embeddingLine(0)])).id);
  const listed: string[] = [];
  for await (const batch of client.batches.list({ limit: 2 })) listed.push(batch.id);
  t.deepEqual(listed, ids.toReversed());
  const wrong = await t.throwsAsync<InstanceType<typeof OpenAI.APIError>>(
    client.batches.list({ after: 'batch_nope' }),
  );
  t.is(wrong.status, 422);
  const [id] = ids;
  const ended = await waitForBatch(client, id!);
  const stranger = clientOf(await stack.createAccount());
  t.deepEqual((await stranger.batches.list()).data, []);
  t.deepEqual((await stranger.batches.list({ after: id! })).data, []);
  for (const call of [
    stranger.batches.retrieve(id!),
    stranger.batches.cancel(id!),
    stranger.post(`/batches/${id}/retry`),
    stranger.get(`/batches/${id}/events`),
    stranger.files.content(ended.output_file_id!),
    stranger.files.delete(ended.output_file_id!),
  ])
    t.is(((await t.throwsAsync(call)) as { status?: number }).status, 404);
  t.is((await client.batches.retrieve(id!)).status, 'completed');
  const input = await upload(client, [embeddingLine(0)]);
  const created = stranger.batches.create({
    input_file_id: input,
    endpoint: '/v1/embeddings',
    completion_window: '24h',
  });
  t.is(((await t.throwsAsync(created)) as { status?: number }).status, 404);
});

test('the input file may be deleted while the batch runs: its bytes are kept until the end, and no longer', async (t) => {
  const held = vendor.hold('gpt-deleted-input');
  t.teardown(() => held.end());
  const account = await stack.createAccount();
  const client = clientOf(account);
  const body = { model: 'deleted-input', messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 };
  const lines = count(300).map((i) => ({ custom_id: `line-${i}`, body }));
  const batch = await createInline(client, '/v1/chat/completions', lines);
  await waitFor('a running line', () => held.waiting > 0);
  const content = await new FileStore(stack.redis).findContent(account.id, batch.input_file_id);
  const { key } = content!.segments[0]!;
  const objects = new ObjectStore(stack.config.s3);
  t.teardown(() => objects.close());
  const isStored = async () => (await objects.describe(key, new AbortController().signal)) !== null;
  t.true((await client.files.delete(batch.input_file_id)).deleted);
  const trash = redisKeys.fileTrash(shardOf(account.id));
  t.is(await stack.redis.zscore(trash, key), null);
  t.true(await isStored());
  held.end();
  const ended = await waitForBatch(client, batch.id);
  t.is(ended.request_counts!.completed, 300);
  await waitFor('the bytes to be deleted', async () => !(await isStored()));
});

test('events follow a batch to its end', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  const batch = await createBatch(
    client,
    count(50).map((i) => embeddingLine(i)),
  );
  const headers = { authorization: `Bearer ${account.apiKey}` };
  const url = `${stack.url}/v1/batches/${batch.id}/events`;
  const text = await (await fetch(url, { headers })).text();
  const events = text.split('\n\n').filter((event) => event.includes('data: '));
  const last = events.at(-1)!;
  t.true(last.includes('event: completed\n'));
  t.like(JSON.parse(/^data: (.*)$/m.exec(last)![1]!), { id: batch.id, request_counts: { completed: 50 } });
  const lastEventId = /^id: (.*)$/m.exec(last)![1]!;
  t.is((await fetch(url, { headers: { ...headers, 'last-event-id': lastEventId } })).status, 204);
});

test('a line that fails because of its vendor runs again', async (t) => {
  const account = await stack.createAccount();
  const client = clientOf(account);
  vendor.setFaults({ garbage: true }, { model: 'gpt-flaky' });
  const body = { model: 'flaky', messages: [{ role: 'user', content: 'hello' }], max_tokens: 20 };
  const { id } = await createInline(client, '/v1/chat/completions', [{ custom_id: 'only', body }]);
  const slices = redisKeys.batchSlices(account.id, id);
  const readAttempt = async () => Number((await stack.redis.hget(slices, '1'))?.split(' ')[2] ?? 0);
  await waitFor('another attempt', async () => (await readAttempt()) > 1);
  vendor.setFaults({}, { model: 'gpt-flaky' });
  const ended = await waitForBatch(client, id);
  t.like(ended, { status: 'completed', request_counts: { total: 1, completed: 1, failed: 0 } });
});
