import test, { type ExecutionContext } from 'ava';
import OpenAI from 'openai';
import sharp from 'sharp';
import { deriveVector } from '../../scripts/vendor-simulator/vectors.ts';
import type { TestStack } from '../support/stack.ts';
import { useVendorStack } from '../support/vendor-stack.ts';

/** The official, unmodified OpenAI package works with only a base URL and a key. */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123] }
models:
  - id: gpt-sim
    aliases: [vendor/gpt-sim]
    type: chat
    context: 8192
    pricing: { prompt: 11, completion: 23 }
    routes: [{ upstream: vendor, model: gpt-sim }]
  - { id: broken, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: gpt-sim+cut-3 }] }
  - { id: dear, type: chat, context: 8192, pricing: { prompt: 1000000, completion: 1000000 }, routes: [{ upstream: vendor, model: gpt-sim }] }
  - id: vectors
    type: embedding
    context: 8192
    dimensions: { default: 1536, adjustable: true }
    pricing: { in_cost_per_million: 3 }
    routes: [{ upstream: vendor, model: text-embedding-sim }]
  - id: use-lite-en-512
    type: embedding
    context: 8192
    dimensions: { default: 512, adjustable: false }
    pricing: { in_cost_per_million: 3 }
    routes: [{ upstream: builtin, model: use-lite-en-512 }]
  - id: demo-svg-image
    type: image
    context: 8192
    size: [256x256, 512x512, 1024x1024]
    max_image_count: 4
    pricing: { type: image, cost_per_image: 0.05 }
    routes: [{ upstream: builtin, model: demo-svg-image }]
`;

let stack: TestStack;

useVendorStack(test, catalogOf, (started) => {
  ({ stack } = started);
});

interface ClientOptions {
  readonly balance?: string;
  readonly rpm?: number;
  readonly apiKey?: string;
  readonly trailingSlash?: boolean;
}

/** A client like a user's; `calls` records the requests that it sent. */
async function createClient(options: ClientOptions = {}): Promise<{ client: OpenAI; calls: string[] }> {
  const { balance = '100', rpm = 100_000, trailingSlash = false } = options;
  const apiKey = options.apiKey ?? (await stack.createAccount({ balance, rpm })).apiKey;
  const calls: string[] = [];
  const client = new OpenAI({
    apiKey,
    baseURL: `${stack.url}/v1${trailingSlash ? '/' : ''}`,
    fetch: (url, init) => {
      calls.push(url instanceof Request ? url.url : String(url));
      return fetch(url, init);
    },
  });
  return { client, calls };
}

const prompt = (text: string): OpenAI.ChatCompletionMessageParam[] => [{ role: 'user', content: text }];

async function expectError<T extends Error>(
  t: ExecutionContext,
  promise: PromiseLike<unknown>,
  type: new (...args: never[]) => T,
): Promise<T> {
  const error: unknown = await Promise.resolve(promise).then(
    () => null,
    (reason: unknown) => reason,
  );
  t.true(error instanceof type, `got ${String(error)}`);
  return error as T;
}

for (const trailingSlash of [false, true]) {
  const base = trailingSlash ? 'a base URL with a trailing slash' : 'a base URL without a trailing slash';

  test(`${base} works for a chat, an embedding, an image and the model list`, async (t) => {
    const { client } = await createClient({ trailingSlash });
    const chat = await client.chat.completions.create({ model: 'gpt-sim', messages: prompt('good morning') });
    t.is(chat.choices[0]?.message.content, 'You said: good morning');
    t.is(chat.choices[0]?.message.role, 'assistant');
    t.is(chat.choices[0]?.finish_reason, 'stop');
    t.is(chat.object, 'chat.completion');
    t.is(chat.model, 'gpt-sim');
    t.is(chat.usage?.total_tokens, 6);
    const { data } = await client.embeddings.create({ model: 'vectors', input: 'good morning' });
    t.is(data[0]?.embedding.length, 1536);
    const image = await client.images.generate({
      model: 'demo-svg-image',
      prompt: 'a morning',
      size: '256x256',
    });
    t.truthy(image.data?.[0]?.b64_json);
    const models = await client.models.list();
    t.deepEqual(
      models.data.map((model) => model.id),
      ['gpt-sim', 'broken', 'dear', 'vectors', 'use-lite-en-512', 'demo-svg-image'],
    );
  });
}

test('the stream helper assembles the same response as without streaming', async (t) => {
  const { client } = await createClient();
  const pieces: string[] = [];
  const stream = client.chat.completions
    .stream({ model: 'gpt-sim', messages: prompt('one two three'), stream_options: { include_usage: true } })
    .on('content', (piece) => pieces.push(piece));
  const final = await stream.finalChatCompletion();
  t.is(final.choices[0]?.message.content, 'You said: one two three');
  t.is(pieces.join(''), 'You said: one two three');
  t.is(final.choices[0]?.finish_reason, 'stop');
  t.is(final.usage?.prompt_tokens, 3);
  t.is(final.usage?.completion_tokens, 5);
});

test('a stream has one id and creation time, the role first, the finish reason last, and no usage by default', async (t) => {
  const { client } = await createClient();
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  const stream = await client.chat.completions.create({
    model: 'gpt-sim',
    messages: prompt('one two'),
    stream: true,
  });
  for await (const chunk of stream) chunks.push(chunk);
  t.true(chunks.length > 4, 'word by word');
  t.is(new Set(chunks.map((chunk) => chunk.id)).size, 1);
  t.is(new Set(chunks.map((chunk) => chunk.created)).size, 1);
  t.deepEqual(new Set(chunks.map((chunk) => chunk.object)), new Set(['chat.completion.chunk']));
  t.deepEqual(new Set(chunks.map((chunk) => chunk.model)), new Set(['gpt-sim']));
  t.is(chunks[0]?.choices[0]?.delta.role, 'assistant');
  t.true(chunks.slice(1).every((chunk) => chunk.choices[0]?.delta.role === undefined));
  t.is(chunks.at(-1)?.choices[0]?.finish_reason, 'stop');
  t.true(chunks.slice(0, -1).every((chunk) => chunk.choices[0]?.finish_reason === null));
  t.true(chunks.every((chunk) => !chunk.usage));
  t.is(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''), 'You said: one two');
});

test('include_usage adds one chunk with the usage and cost but no choices, before [DONE]', async (t) => {
  const { client } = await createClient();
  const { data: stream, response } = await client.chat.completions
    .create({
      model: 'gpt-sim',
      messages: prompt('one two'),
      stream: true,
      stream_options: { include_usage: true },
    })
    .withResponse();
  t.regex(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const usageChunks = chunks.filter((chunk) => chunk.usage);
  t.is(usageChunks.length, 1);
  t.is(chunks.at(-1), usageChunks[0]);
  t.deepEqual(usageChunks[0]?.choices, []);
  const usage = usageChunks[0]!.usage as unknown as Record<string, unknown>;
  t.is(usage['prompt_tokens'], 2);
  t.is(usage['completion_tokens'], 4);
  t.is(usage['total_tokens'], 6);
  t.is(usage['cost_request'], (2 * 11 + 4 * 23) / 1e6);
  t.is(typeof usage['total_time'], 'number');
  t.is(usage['free_request'], false);
  t.is(chunks.at(-2)?.choices[0]?.finish_reason, 'stop');
});

test('if a stream breaks after its first output, the loop that reads it throws', async (t) => {
  const { client } = await createClient();
  const stream = await client.chat.completions.create({
    model: 'broken',
    messages: prompt('a b c'),
    stream: true,
  });
  const seen: string[] = [];
  const error = await expectError(
    t,
    (async () => {
      for await (const chunk of stream) seen.push(chunk.choices[0]?.delta.content ?? '');
    })(),
    OpenAI.APIError,
  );
  t.is(seen.join(''), 'You said:');
  t.is(error.code, 'upstream_error');
});

test('tool calls are complete, with and without streaming', async (t) => {
  const { client } = await createClient();
  const parameters = {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer' } },
    required: ['city', 'days'],
  };
  const body = {
    model: 'gpt-sim',
    messages: prompt('what is the weather'),
    tools: [{ type: 'function' as const, function: { name: 'weather', parameters } }],
  };
  const whole = await client.chat.completions.create(body);
  const streamed = await client.chat.completions.stream(body).finalChatCompletion();
  for (const completion of [whole, streamed]) {
    const call = completion.choices[0]?.message.tool_calls?.[0];
    t.is(completion.choices[0]?.finish_reason, 'tool_calls');
    t.is(completion.choices[0]?.message.content, null);
    t.is(call?.type, 'function');
    if (call?.type !== 'function') return;
    t.is(call.function.name, 'weather');
    t.deepEqual(JSON.parse(call.function.arguments), { city: 'simulated', days: 1 });
    t.truthy(call.id);
  }
});

test('embeddings are exact with the client’s base64 default and as floats, and keep the order of inputs', async (t) => {
  const { client } = await createClient();
  const input = ['first text', 'second text', 'third', 'first text'];
  const byDefault = await client.embeddings.create({ model: 'vectors', input });
  const asFloats = await client.embeddings.create({ model: 'vectors', input, encoding_format: 'float' });
  for (const response of [byDefault, asFloats]) {
    t.is(response.object, 'list');
    t.deepEqual(
      response.data.map((item) => [item.object, item.index]),
      input.map((_, index) => ['embedding', index]),
    );
    t.deepEqual(
      response.data.map((item) => Float32Array.from(item.embedding)),
      input.map((text) => deriveVector(text, 1536)),
    );
    t.is(response.usage.prompt_tokens, 7);
    t.is(response.usage.total_tokens, 7);
  }
});

test('dimensions are honoured if they are adjustable, and rejected if not', async (t) => {
  const { client } = await createClient();
  const short = await client.embeddings.create({ model: 'vectors', input: 'short', dimensions: 64 });
  t.is(short.data[0]?.embedding.length, 64);
  const error = await expectError(
    t,
    client.embeddings.create({ model: 'use-lite-en-512', input: 'short', dimensions: 64 }),
    OpenAI.UnprocessableEntityError,
  );
  t.is(error.param, 'dimensions');
  await expectError(
    t,
    client.embeddings.create({ model: 'vectors', input: 'x', dimensions: 4096 }),
    OpenAI.UnprocessableEntityError,
  );
});

test('images returned as base64 are PNGs of the requested size and number', async (t) => {
  const { client } = await createClient();
  const { data } = await client.images.generate({
    model: 'demo-svg-image',
    prompt: 'two boats on a lake',
    size: '512x512',
    n: 2,
    response_format: 'b64_json',
  });
  t.is(data?.length, 2);
  for (const { b64_json: base64, url } of data ?? []) {
    t.falsy(url);
    const bytes = Buffer.from(base64!, 'base64');
    t.is(bytes.toString('latin1', 1, 4), 'PNG');
    const { width, height, format } = await sharp(bytes).metadata();
    t.deepEqual({ width, height, format }, { width: 512, height: 512, format: 'png' });
  }
});

test('images returned as links can be fetched without a key, and have the right content type', async (t) => {
  const { client } = await createClient();
  const { data } = await client.images.generate({
    model: 'demo-svg-image',
    prompt: 'a boat',
    size: '256x256',
    n: 2,
    response_format: 'url',
  });
  t.is(new Set(data?.map((image) => image.url)).size, 2);
  for (const { url, b64_json: base64 } of data ?? []) {
    t.falsy(base64);
    t.true(url?.startsWith(`${stack.url}/files/`));
    const response = await fetch(url!);
    t.is(response.status, 200);
    t.is(response.headers.get('content-type'), 'image/png');
    t.is(response.headers.get('x-content-type-options'), 'nosniff');
    const bytes = Buffer.from(await response.arrayBuffer());
    t.is(Number(response.headers.get('content-length')), bytes.length);
    t.is((await sharp(bytes).metadata()).width, 256);
  }
  t.is((await fetch(`${stack.url}/files/${'a'.repeat(43)}.png`)).status, 404);
});

test('a model can be retrieved by its id, and by an alias with a slash', async (t) => {
  const { client } = await createClient();
  t.is((await client.models.retrieve('gpt-sim')).id, 'gpt-sim');
  const found = await client.models.retrieve('vendor/gpt-sim');
  t.is(found.id, 'gpt-sim');
  t.is(found.object, 'model');
  await expectError(t, client.models.retrieve('vendor/none'), OpenAI.NotFoundError);
  const chat = await client.chat.completions.create({ model: 'vendor/gpt-sim', messages: prompt('hi') });
  t.is(chat.choices[0]?.message.content, 'You said: hi');
});

test('a wrong key is an AuthenticationError, and is not retried', async (t) => {
  const { client, calls } = await createClient({ apiKey: `mg-${'x'.repeat(43)}` });
  const error = await expectError(
    t,
    client.chat.completions.create({ model: 'gpt-sim', messages: prompt('hi') }),
    OpenAI.AuthenticationError,
  );
  t.is(error.status, 401);
  t.is(error.code, 'invalid_api_key');
  t.truthy(error.requestID);
  t.is(calls.length, 1);
});

test('an insufficient balance is an APIError with status 402, and is not retried', async (t) => {
  const { client, calls } = await createClient({ balance: '0.01' });
  const error = await expectError(
    t,
    client.chat.completions.create({ model: 'dear', messages: prompt('hi') }),
    OpenAI.APIError,
  );
  t.is(Number(error.status), 402);
  t.is(error.code, 'insufficient_balance');
  t.is(calls.length, 1);
});

test('an unknown model is a NotFoundError, and an invalid request an UnprocessableEntityError', async (t) => {
  const { client, calls } = await createClient();
  const missing = await expectError(
    t,
    client.chat.completions.create({ model: 'gpt-none', messages: prompt('hi') }),
    OpenAI.NotFoundError,
  );
  t.is(missing.code, 'model_not_found');
  t.regex(missing.message, /gpt-none/);
  const invalid = await expectError(
    t,
    client.chat.completions.create({ model: 'gpt-sim', messages: prompt('hi'), temperature: 3 }),
    OpenAI.UnprocessableEntityError,
  );
  t.is(invalid.param, 'temperature');
  t.is(invalid.code, 'validation_failed');
  t.is(calls.length, 2);
});

test('the rate limit is shown by decreasing headers, and exceeding it raises a RateLimitError', async (t) => {
  const { client } = await createClient({ rpm: 2 });
  const body = { model: 'gpt-sim', messages: prompt('hi') };
  const remaining: (string | null)[] = [];
  for (let i = 0; i < 2; i++) {
    const { response } = await client.chat.completions.create(body).withResponse();
    t.is(response.headers.get('x-ratelimit-limit-requests'), '2');
    t.regex(response.headers.get('x-ratelimit-reset-requests') ?? '', /^(\d+m)?\d+(\.\d+)?s$/);
    remaining.push(response.headers.get('x-ratelimit-remaining-requests'));
  }
  t.deepEqual(remaining, ['1', '0']);
  const error = await expectError(
    t,
    client.chat.completions.create(body, { maxRetries: 0 }),
    OpenAI.RateLimitError,
  );
  t.is(error.code, 'rate_limit_exceeded');
  const retryAfter = Number(error.headers?.get('retry-after'));
  t.true(retryAfter > 0 && retryAfter <= 60, `retry-after ${retryAfter}`);
  t.is(error.headers?.get('x-ratelimit-remaining-requests'), '0');
});
