import test from 'ava';
import { startStack, type TestStack } from '../support/stack.ts';

/** The public list of models needs no key and has every field in the specification. */

const catalog = `
upstreams:
  builtin: { kind: builtin }
  keyless: { kind: openai, baseUrl: "http://127.0.0.1:9/v1", apiKeys: [env:NO_SUCH_KEY] }
models:
  - { id: echo, type: chat, context: 8192, pricing: { prompt: 1.5, completion: 2.5 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - id: lab/deep.thought:42
    aliases: [lab/dt, "deep-thought"]
    type: vision
    context: 123456
    created: 2026-02-03
    name: Deep Thought
    description: Thinks for a while.
    img: https://x.example/dt.png
    owned_by: lab
    reasoning: true
    reasoning_effort: { default: low, choices: [low, high] }
    image_quality: { default: hd, choices: [sd, hd] }
    web_search: false
    input_modalities: [text, image]
    output_modalities: [text]
    supported_file_types: [pdf]
    max_file_count: 3
    architecture: moe
    quantization: fp8
    rpm_coefficient: 4
    pricing:
      since: 2026-01-02
      prompt: 1.25
      completion: 2.5
      input_cache_read: 0.5
      overrides: [{ min_prompt_tokens: 1000, prompt: 3 }]
      free_requests: true
    routes: [{ upstream: keyless }]
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 512 }, pricing: { in_cost_per_million: 1 }, routes: [{ upstream: builtin, model: use-lite-en-512 }] }
  - { id: pictures, type: image, context: 8192, size: [256x256], max_image_count: 2, pricing: { type: image, cost_per_image_quality: { hd: { 256x256: 1.5 } } }, routes: [{ upstream: builtin, model: demo-svg-image }] }
`;

let stack: TestStack;

test.before(async () => {
  stack = await startStack({ catalog });
});
test.after.always(() => stack.close());

type Model = Readonly<Record<string, unknown>> & { readonly id: string };

async function get(path: string): Promise<{ status: number; body: unknown; response: Response }> {
  const response = await fetch(`${stack.url}${path}`);
  return { status: response.status, body: await response.json(), response };
}

async function list(query = ''): Promise<readonly string[]> {
  const { body } = await get(`/v1/models${query}`);
  return (body as { data: Model[] }).data.map((model) => model.id);
}

const fields = `id object created context size type active name description img reasoning reasoning_effort
  image_quality web_search input_modalities output_modalities supported_file_types max_image_count max_file_count
  architecture quantization pricing owned_by rpm_coefficient`.split(/\s+/);
const pricingFields =
  `date_of_use type in_cost_per_million out_cost_per_million cost_per_million cost_per_image
  cost_per_image_quality cost_per_second cost_per_request prompt completion input_cache_read input_cache_write
  overrides free_requests`.split(/\s+/);

test('the list has the standard format and the catalog’s order, and needs no key', async (t) => {
  const { status, body, response } = await get('/v1/models');
  t.is(status, 200);
  t.deepEqual(Object.keys(body as object).sort(), ['data', 'object']);
  t.is((body as { object: string }).object, 'list');
  t.deepEqual(await list('?active=all'), ['echo', 'lab/deep.thought:42', 'vectors', 'pictures']);
  // The service has no key for the other one.
  t.deepEqual(await list(), ['echo', 'vectors', 'pictures']);
  t.truthy(response.headers.get('x-request-id'));
});

test('each model has every field in the specification, and no other', async (t) => {
  const { body } = await get('/v1/models?active=all');
  for (const model of (body as { data: (Model & { pricing: object })[] }).data) {
    t.deepEqual(Object.keys(model).sort(), [...fields].sort(), model.id);
    t.deepEqual(Object.keys(model.pricing).sort(), [...pricingFields].sort(), model.id);
  }
});

test('a model shows its catalog entry', async (t) => {
  const { body } = await get('/v1/models/lab/deep.thought:42');
  t.like(body, {
    id: 'lab/deep.thought:42',
    object: 'model',
    created: Date.UTC(2026, 1, 3) / 1_000,
    context: 123_456,
    type: 'vision',
    active: false,
    name: 'Deep Thought',
    description: 'Thinks for a while.',
    img: 'https://x.example/dt.png',
    owned_by: 'lab',
    reasoning: true,
    reasoning_effort: { default: 'low', choices: ['low', 'high'] },
    image_quality: { default: 'hd', choices: ['sd', 'hd'] },
    web_search: false,
    input_modalities: ['text', 'image'],
    supported_file_types: ['pdf'],
    max_file_count: 3,
    max_image_count: null,
    size: null,
    architecture: 'moe',
    quantization: 'fp8',
    rpm_coefficient: 4,
  });
  t.like((body as { pricing: object }).pricing, {
    date_of_use: '2026-01-02',
    type: 'tokens',
    prompt: 1.25,
    completion: 2.5,
    input_cache_read: 0.5,
    input_cache_write: null,
    free_requests: true,
    overrides: [{ min_prompt_tokens: 1000, prompt: 3 }],
  });
});

test('fields missing from the catalog have their defaults', async (t) => {
  const { body } = await get('/v1/models/echo');
  t.like(body, { active: true, rpm_coefficient: 1, size: null, name: null, web_search: null });
  const { pricing } = body as { pricing: { date_of_use: string; free_requests: boolean } };
  // A price without a date applies from when the gateway first saw it.
  t.is(pricing.date_of_use, new Date().toISOString().slice(0, 10));
  t.false(pricing.free_requests);
});

test('the name, URL and key of an upstream are never exposed', async (t) => {
  const { body } = await get('/v1/models');
  t.false(/keyless|127\.0\.0\.1|NO_SUCH_KEY|builtin|route/.test(JSON.stringify(body)));
});

for (const [identifier, path] of [
  ['its id with a plain slash', 'lab/deep.thought:42'],
  ['its id with the slash encoded', 'lab%2Fdeep.thought%3A42'],
  ['an alias with a slash', 'lab/dt'],
  ['an alias with the slash encoded', 'lab%2Fdt'],
  ['an alias without a slash', 'deep-thought'],
] as const) {
  test(`a model is found by ${identifier}`, async (t) => {
    const { status, body } = await get(`/v1/models/${path}`);
    t.is(status, 200);
    t.is((body as Model).id, 'lab/deep.thought:42');
  });
}

test('the list can be filtered by type', async (t) => {
  t.deepEqual(await list('?type=chat'), ['echo']);
  t.deepEqual(await list('?type=vision'), []);
  t.deepEqual(await list('?type=vision&active=all'), ['lab/deep.thought:42']);
  t.deepEqual(await list('?type=embedding'), ['vectors']);
  t.deepEqual(await list('?type=image'), ['pictures']);
});

test('an unknown model is a 404 in the standard error format', async (t) => {
  const { status, body } = await get('/v1/models/lab/none');
  t.is(status, 404);
  t.like(body, { error: { code: 'model_not_found' }, detail: { error: 'model_not_found' } });
});

test('a model whose upstream has no key is inactive and rejected, and the others work', async (t) => {
  const account = await stack.createAccount();
  const messages = [{ role: 'user', content: 'hi' }];
  const rejected = await stack.post('/v1/chat/completions', account.apiKey, { model: 'lab/dt', messages });
  t.is(rejected.status, 422);
  t.like(await rejected.json(), {
    error: { code: 'model_disabled' },
    detail: [{ loc: ['body', 'model'] }],
  });
  const succeeded = await stack.post('/v1/chat/completions', account.apiKey, { model: 'echo', messages });
  t.is(succeeded.status, 200);
});

test('a vision model is a chat model too', async (t) => {
  const account = await stack.createAccount();
  const body = { model: 'lab/dt', messages: [{ role: 'user', content: 'hi' }] };
  const response = await stack.post('/v1/chat/completions', account.apiKey, body);
  // The model is inactive, but the request is not rejected for the model's type.
  t.is(((await response.json()) as { error: { code: string } }).error.code, 'model_disabled');
});

test('a HEAD of the list has no body', async (t) => {
  const response = await fetch(`${stack.url}/v1/models`, { method: 'HEAD' });
  t.is(response.status, 200);
  t.is(await response.text(), '');
});
