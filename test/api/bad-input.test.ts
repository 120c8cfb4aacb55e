import { once } from 'node:events';
import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { openRaw } from '../support/raw-caller.ts';
import type { RawResponse } from '../support/raw-response.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { readStoredState, waitForNoReservation } from '../support/observe.ts';
import { readThreadMs } from '../support/thread-clock.ts';

/**
 * Malformed and invalid requests get the right status and an error with its location and description, and store nothing.
 */

const catalogOf = (vendorUrl: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [sk-vendor-key-0123] }
  keyless: { kind: openai, baseUrl: "${vendorUrl}/v1", apiKeys: [env:NO_SUCH_KEY] }
models:
  - id: chat
    type: chat
    context: 100000
    reasoning_effort: { default: low, choices: [low, high] }
    pricing: { prompt: 11, completion: 23, free_requests: true }
    routes: [{ upstream: vendor, model: gpt-sim }]
  - { id: tiny-chat, type: chat, context: 50, pricing: { prompt: 1 }, routes: [{ upstream: vendor, model: gpt-sim }] }
  - { id: off, type: chat, context: 8192, pricing: { prompt: 1 }, routes: [{ upstream: keyless, model: gpt-sim }] }
  - id: vectors
    type: embedding
    context: 8192
    dimensions: { default: 1536, adjustable: true }
    pricing: { in_cost_per_million: 3, free_requests: true }
    routes: [{ upstream: vendor, model: text-embedding-sim }]
  - id: fixed-vectors
    type: embedding
    context: 8192
    dimensions: { default: 1536, adjustable: false }
    pricing: { in_cost_per_million: 3 }
    routes: [{ upstream: vendor, model: text-embedding-sim }]
  - id: picture
    type: image
    context: 8192
    size: [512x512, 1024x1024]
    max_image_count: 2
    image_quality: { default: low, choices: [low, high] }
    pricing: { type: image, cost_per_image: 0.05, free_requests: true }
    routes: [{ upstream: vendor, model: gpt-image-sim }]
`;

let stack: TestStack;
let vendor: VendorSimulator;
let account: TestAccount;

test.before(async () => {
  vendor = await startVendorSimulator();
  stack = await startStack({ catalog: catalogOf(vendor.url) });
  account = await stack.createAccount({ balance: '10', freeRequests: 5 });
});
test.after.always(async () => {
  await stack.close();
  await vendor.close();
});

interface ErrorBody {
  readonly error: { message: string; type: string; param: string | null; code: string };
  readonly detail:
    | { loc: (string | number)[]; msg: string; type: string }[]
    | { error: string; message_ru: string; message_en: string };
}

interface ExpectedError {
  readonly status: number;
  readonly code: string;
  /** The location that a 422 must report. */
  readonly loc?: readonly (string | number)[];
  /** A pattern that its message must match. */
  readonly messagePattern?: RegExp;
}

/** Checks that the response is the expected error, in the standard format. */
function checkError(t: ExecutionContext, status: number, text: string, expected: ExpectedError): ErrorBody {
  t.is(status, expected.status, text.slice(0, 300));
  const body = JSON.parse(text) as ErrorBody;
  t.deepEqual(Object.keys(body).sort(), ['detail', 'error']);
  t.deepEqual(Object.keys(body.error).sort(), ['code', 'message', 'param', 'type']);
  t.is(body.error.code, expected.code);
  t.truthy(body.error.message);
  t.truthy(body.error.type);
  if (expected.status === 422) {
    t.true(Array.isArray(body.detail) && body.detail.length > 0);
    const issues = body.detail as { loc: (string | number)[]; msg: string; type: string }[];
    for (const issue of issues) {
      t.deepEqual(Object.keys(issue).sort(), ['loc', 'msg', 'type']);
      t.truthy(issue.msg);
      t.truthy(issue.type);
    }
    if (expected.loc !== undefined) {
      t.deepEqual(issues[0]?.loc, [...expected.loc]);
      t.is(body.error.param, expected.loc.slice(1).join('.') || null);
      t.true(
        body.error.message.includes(expected.loc.slice(1).join('.')),
        `"${body.error.message}" does not contain the location`,
      );
    }
  } else {
    t.false(Array.isArray(body.detail));
    const detail = body.detail as { error: string; message_ru: string; message_en: string };
    t.deepEqual(Object.keys(detail).sort(), ['error', 'message_en', 'message_ru']);
    t.is(detail.error, expected.code);
    t.regex(detail.message_ru, /[а-я]/i);
    t.truthy(detail.message_en);
  }
  if (expected.messagePattern !== undefined) t.regex(body.error.message, expected.messagePattern);
  return body;
}

/** Checks that `run` changes no balance, reservation, queue or ledger entry. */
async function expectNothingStored(t: ExecutionContext, run: () => Promise<void>): Promise<void> {
  const before = await readStoredState(stack, account.id);
  await run();
  t.deepEqual(await readStoredState(stack, account.id), before);
  t.deepEqual(before.reservations, []);
}

interface Case extends ExpectedError {
  readonly path: string;
  readonly body?: unknown;
  readonly method?: string;
  /** Null sends no Authorization header. */
  readonly apiKey?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

const chat = '/v1/chat/completions';
const embeddings = '/v1/embeddings';
const images = '/v1/images/generations';
const hello = [{ role: 'user', content: 'hello' }];
const invalid = { status: 422, code: 'validation_failed' };
const invalidChat = (body: object, loc: readonly (string | number)[], messagePattern?: RegExp): Case => ({
  path: chat,
  body: { model: 'chat', messages: hello, ...body },
  ...invalid,
  loc: ['body', ...loc],
  ...(messagePattern === undefined ? {} : { messagePattern }),
});
const invalidMessage = (message: unknown, loc: readonly (string | number)[], messagePattern?: RegExp): Case =>
  invalidChat({ messages: [...hello, message] }, ['messages', 1, ...loc], messagePattern);
const invalidInput = (input: unknown, loc: readonly (string | number)[], messagePattern?: RegExp): Case => ({
  path: embeddings,
  body: { model: 'vectors', input },
  ...invalid,
  loc: ['body', ...loc],
  ...(messagePattern === undefined ? {} : { messagePattern }),
});
const invalidImage = (body: object, loc: readonly (string | number)[], messagePattern?: RegExp): Case => ({
  path: images,
  body: { model: 'picture', prompt: 'a boat', ...body },
  ...invalid,
  loc: ['body', ...loc],
  ...(messagePattern === undefined ? {} : { messagePattern }),
});

const long = 'cat '.repeat(9_000);
const noKey = { status: 401, code: 'invalid_api_key' };
const notFound = { status: 404, code: 'not_found' };
const noModel = { status: 404, code: 'model_not_found', messagePattern: /nope/ };
const json = 'application/json';

const cases: Readonly<Record<string, Case>> = {
  // Authentication
  'a missing key': { path: chat, body: { model: 'chat', messages: hello }, apiKey: null, ...noKey },
  'a wrong key': { path: chat, body: { model: 'chat', messages: hello }, apiKey: 'mg-wrong', ...noKey },
  'an empty bearer': {
    path: embeddings,
    body: {},
    apiKey: null,
    headers: { authorization: 'Bearer ' },
    ...noKey,
  },
  'a key with another scheme': {
    path: images,
    body: {},
    apiKey: null,
    headers: { authorization: 'Basic abc' },
    ...noKey,
  },
  'a missing key on the profile': { path: '/v1/users/profile', method: 'GET', apiKey: null, ...noKey },

  // Model
  'a chat with an unknown model': { path: chat, body: { model: 'nope', messages: hello }, ...noModel },
  'embeddings with an unknown model': { path: embeddings, body: { model: 'nope', input: 'x' }, ...noModel },
  'an image with an unknown model': { path: images, body: { model: 'nope', prompt: 'a boat' }, ...noModel },
  'an unknown model in the path': {
    path: '/v1/models/nope',
    method: 'GET',
    status: 404,
    code: 'model_not_found',
  },
  'a chat with an embedding model': invalidChat({ model: 'vectors' }, ['model'], /embedding/),
  'embeddings with a chat model': {
    path: embeddings,
    body: { model: 'chat', input: 'x' },
    ...invalid,
    loc: ['body', 'model'],
  },
  'an image with a chat model': invalidImage({ model: 'chat' }, ['model']),
  'a model whose upstream has no API key': {
    ...invalidChat({ model: 'off' }, ['model']),
    code: 'model_disabled',
  },
  'an empty model': invalidChat({ model: '' }, ['model']),
  'a model that is a number': invalidChat({ model: 5 }, ['model'], /string/),

  // Fields of chats
  'a chat without messages': {
    path: chat,
    body: { model: 'chat' },
    ...invalid,
    loc: ['body', 'messages'],
    messagePattern: /required/,
  },
  'an empty list of messages': invalidChat({ messages: [] }, ['messages']),
  'messages that are a string': invalidChat({ messages: 'hello' }, ['messages'], /array/),
  'a message that is a string': invalidMessage('hello', [], /object/),
  'a message that is null': invalidMessage(null, [], /object/),
  'a message without a role': invalidMessage({ content: 'x' }, ['role'], /required/),
  'an unknown role': invalidMessage({ role: 'robot', content: 'x' }, ['role'], /user, assistant/),
  'content that is a number': invalidMessage({ role: 'user', content: 5 }, ['content'], /string/),
  'content that is an object': invalidMessage(
    { role: 'user', content: { text: 'x' } },
    ['content'],
    /string/,
  ),
  'a content item that is a string': invalidMessage(
    { role: 'user', content: ['x'] },
    ['content', 0],
    /object/,
  ),
  'a content item of an unknown type': invalidMessage({ role: 'user', content: [{ type: 'smell' }] }, [
    'content',
    0,
    'type',
  ]),
  'a text item with a number as text': invalidMessage(
    {
      role: 'user',
      content: [
        { type: 'text', text: 'x' },
        { type: 'text', text: 5 },
      ],
    },
    ['content', 1, 'text'],
    /string/,
  ),
  'an image item that is a string': invalidMessage(
    { role: 'user', content: [{ type: 'image_url', image_url: 'https://x.example/a.png' }] },
    ['content', 0, 'image_url'],
    /object/,
  ),
  'an image item without a URL': invalidMessage(
    { role: 'user', content: [{ type: 'image_url', image_url: {} }] },
    ['content', 0, 'image_url', 'url'],
    /required/,
  ),
  'an image over plain http': invalidMessage(
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://x.example/a.png' } }] },
    ['content', 0, 'image_url', 'url'],
    /https/,
  ),
  'an image from a file URL': invalidMessage(
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }] },
    ['content', 0, 'image_url', 'url'],
    /https/,
  ),
  'an image URL of 2084 characters': invalidMessage(
    {
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: `https://x.example/${'a'.repeat(2066)}` } }],
    },
    ['content', 0, 'image_url', 'url'],
    /2083/,
  ),
  'tool calls that are an object': invalidMessage(
    { role: 'assistant', tool_calls: {} },
    ['tool_calls'],
    /array/,
  ),
  'a tool call without its function': invalidMessage(
    { role: 'assistant', tool_calls: [{ id: 'a' }] },
    ['tool_calls', 0, 'function'],
    /required/,
  ),
  'a tool of an unknown type': invalidChat(
    { tools: [{ type: 'hammer', function: { name: 'x' } }] },
    ['tools', 0, 'type'],
    /function/,
  ),
  'a tool without a name': invalidChat(
    { tools: [{ type: 'function', function: {} }] },
    ['tools', 0, 'function', 'name'],
    /required/,
  ),
  'a temperature of 3': invalidChat({ temperature: 3 }, ['temperature'], /2/),
  'a temperature that is a string': invalidChat({ temperature: '1' }, ['temperature'], /number/),
  'a negative max_tokens': invalidChat({ max_tokens: -1 }, ['max_tokens'], /0/),
  'a fractional max_tokens': invalidChat({ max_tokens: 1.5 }, ['max_tokens'], /integer/),
  'a top_p of 1.1': invalidChat({ top_p: 1.1 }, ['top_p'], /1/),
  'a presence penalty of -3': invalidChat({ presence_penalty: -3 }, ['presence_penalty']),
  'stream set to "yes"': invalidChat({ stream: 'yes' }, ['stream'], /boolean/),
  'web_search set to "maybe"': invalidChat({ web_search: 'maybe' }, ['web_search'], /links/),
  'a reasoning effort that the model does not support': invalidChat(
    { reasoning_effort: 'heroic' },
    ['reasoning_effort'],
    /low, high/,
  ),
  'a thousand choices': invalidChat({ n: 1000 }, ['n']),
  'a prompt longer than the context': {
    ...invalidChat(
      { model: 'tiny-chat', messages: [{ role: 'user', content: long }] },
      ['messages'],
      /50 tokens/,
    ),
    status: 400,
    code: 'context_length_exceeded',
  },

  // Fields of embeddings
  '2049 inputs': invalidInput(
    Array.from({ length: 2049 }, () => 'x'),
    ['input'],
    /2048/,
  ),
  'an empty input': invalidInput('', ['input'], /must not be empty/),
  'an empty list of inputs': invalidInput([], ['input'], /must not be empty/),
  'an empty string among inputs': invalidInput(['x', '', 'y'], ['input', 1], /must not be empty/),
  'a list with one empty string': invalidInput([''], ['input', 0], /must not be empty/),
  'an input that is null': invalidInput(null, ['input'], /string/),
  'an input that is a number': invalidInput(5, ['input'], /string/),
  'a number among inputs': invalidInput(['x', 5], ['input', 1], /string/),
  'a string among token IDs': invalidInput([9906, 'x'], ['input', 1], /integer/),
  'a token ID among strings': invalidInput(['x', 9906], ['input', 1], /string/),
  'a token ID among arrays of token IDs': invalidInput([[9906], 1917], ['input', 1], /array/),
  'an empty array among arrays of token IDs': invalidInput([[9906], []], ['input', 1], /must not be empty/),
  'a fraction among token IDs': invalidInput([9906, 0.5], ['input', 1], /integer/),
  'a negative token ID': invalidInput([9906, -1], ['input', 1], /^input\.1: -1 is not a token ID/),
  'a token ID beyond the maximum': invalidInput(
    [[9906], [1917, 200_000]],
    ['input', 1, 1],
    /^input\.1\.1: 200000 is not a token ID of cl100k_base \(0 to 100255\)$/,
  ),
  'a special token': invalidInput([[9906, 100_257]], ['input', 0, 1], /100257 .* special token/),
  'a string in an array of arrays of token IDs': invalidInput(
    [[9906], ['x', null, [1], 0.5]],
    ['input', 1, 0],
    /^input\.1\.0: must be a token ID of cl100k_base \(0 to 100255\), not a string \(and 3 more\)$/,
  ),
  '2049 arrays of token IDs': invalidInput(
    Array.from({ length: 2049 }, () => [9906]),
    ['input'],
    /2048/,
  ),
  'more than 8192 token IDs': {
    ...invalidInput(
      Array.from({ length: 8193 }, () => 9906),
      ['input'],
      /^input: is longer than 8192 tokens$/,
    ),
    code: 'content_too_long',
  },
  'more than 8192 token IDs in one of several arrays': {
    ...invalidInput([[9906], Array.from({ length: 8193 }, () => 9906)], ['input', 1], /8192/),
    code: 'content_too_long',
  },
  'an object among inputs': invalidInput(
    [{}],
    ['input'],
    /a string, an array of strings, an array of integers/,
  ),
  'no input': {
    path: embeddings,
    body: { model: 'vectors' },
    ...invalid,
    loc: ['body', 'input'],
    messagePattern: /required/,
  },
  'an input over 8192 tokens': { ...invalidInput(long, ['input'], /8192/), code: 'content_too_long' },
  'one of many inputs over 8192 tokens': {
    ...invalidInput(['x', 'y', long], ['input', 2], /^input\.2: is longer than 8192 tokens$/),
    code: 'content_too_long',
  },
  'two of many inputs over 8192 tokens': {
    ...invalidInput(
      ['x', long, 'y', long],
      ['input', 1],
      /^input\.1: is longer than 8192 tokens; so is input\.3$/,
    ),
    code: 'content_too_long',
  },
  'many inputs over 8192 tokens': {
    ...invalidInput(
      Array.from({ length: 30 }, () => long),
      ['input', 0],
      /^input\.0: is longer than 8192 tokens; so are input\.1, input\.2, input\.3, input\.4 and 25 more$/,
    ),
    code: 'content_too_long',
  },
  'an encoding_format of hex': {
    path: embeddings,
    body: { model: 'vectors', input: 'x', encoding_format: 'hex' },
    ...invalid,
    loc: ['body', 'encoding_format'],
    messagePattern: /float, base64/,
  },
  'dimensions of 0': {
    path: embeddings,
    body: { model: 'vectors', input: 'x', dimensions: 0 },
    ...invalid,
    loc: ['body', 'dimensions'],
  },
  'more dimensions than the model has': {
    path: embeddings,
    body: { model: 'vectors', input: 'x', dimensions: 1537 },
    ...invalid,
    loc: ['body', 'dimensions'],
    messagePattern: /1536/,
  },
  'dimensions for a model whose dimensions are fixed': {
    path: embeddings,
    body: { model: 'fixed-vectors', input: 'x', dimensions: 8 },
    ...invalid,
    loc: ['body', 'dimensions'],
    messagePattern: /1536/,
  },

  // Fields of images
  'an image prompt of 2 characters': invalidImage({ prompt: 'ab' }, ['prompt'], /3/),
  'no image prompt': {
    path: images,
    body: { model: 'picture' },
    ...invalid,
    loc: ['body', 'prompt'],
    messagePattern: /required/,
  },
  '5 images': invalidImage({ n: 5 }, ['n'], /4/),
  '0 images': invalidImage({ n: 0 }, ['n'], /1/),
  'more images than the model supports': invalidImage({ n: 3 }, ['n'], /2/),
  'an image count that is a string': invalidImage({ n: '2' }, ['n'], /integer/),
  'an unsupported size': invalidImage({ size: '999x999' }, ['size'], /512x512, 1024x1024/),
  'an unsupported quality': invalidImage({ quality: 'ultra' }, ['quality'], /low, high/),
  'an unknown response format': invalidImage(
    { response_format: 'gif' },
    ['response_format'],
    /url, b64_json/,
  ),
  'an image prompt longer than the context': {
    ...invalidImage({ prompt: long }, ['prompt'], /8192/),
    code: 'content_too_long',
  },

  // The body
  'broken JSON': {
    path: chat,
    body: '{"model": "chat", "messages": [',
    ...invalid,
    loc: ['body'],
    messagePattern: /JSON/,
  },
  'a JSON string': {
    path: chat,
    body: '"hello"',
    ...invalid,
    loc: ['body'],
    messagePattern: /must be a JSON object/,
  },
  'a body that is null': {
    path: chat,
    body: 'null',
    ...invalid,
    loc: ['body'],
    messagePattern: /must be a JSON object/,
  },
  'a body that is an array': {
    path: chat,
    body: '[1,2]',
    ...invalid,
    loc: ['body'],
    messagePattern: /must be a JSON object/,
  },
  'an empty object': { path: chat, body: {}, ...invalid, loc: ['body', 'model'], messagePattern: /required/ },
  'an empty body': { path: embeddings, body: '', ...invalid },
  'a form body': {
    path: chat,
    body: 'model=chat',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    status: 415,
    code: 'unsupported_media_type',
    messagePattern: /application\/json/,
  },
  'a plain text body': {
    path: embeddings,
    body: '{}',
    headers: { 'content-type': 'text/plain' },
    status: 415,
    code: 'unsupported_media_type',
    messagePattern: /text\/plain/,
  },
  XML: {
    path: images,
    body: '<a/>',
    headers: { 'content-type': 'application/xml' },
    status: 415,
    code: 'unsupported_media_type',
  },
  'an unknown content encoding': {
    path: chat,
    body: { model: 'chat', messages: hello },
    headers: { 'content-encoding': 'zstd-of-mine' },
    status: 415,
    code: 'unsupported_media_type',
  },

  // The path
  'an unknown path': {
    path: '/v1/chat/nothing',
    body: {},
    ...notFound,
    messagePattern: /\/v1\/chat\/nothing/,
  },
  'a path without the version': { path: '/chat/completions', body: {}, ...notFound },
  'a doubled slash before the resource': {
    path: '/v1//chat/completions',
    body: { model: 'chat', messages: hello },
    ...notFound,
    messagePattern: /slash/,
  },
  'a doubled slash within the path': {
    path: '/v1/chat//completions',
    body: { model: 'chat', messages: hello },
    ...notFound,
    messagePattern: /slash/,
  },
  'a doubled slash at the start': {
    path: '//v1/chat/completions',
    body: { model: 'chat', messages: hello },
    ...notFound,
  },
  'a doubled slash in a GET': { path: '/v1//models', method: 'GET', ...notFound },
  'an unknown model type': {
    path: '/v1/models?type=smell',
    method: 'GET',
    ...invalid,
    loc: ['query', 'type'],
    messagePattern: /chat, vision/,
  },
  'a model id with invalid percent-encoding': {
    path: '/v1/models/%zz',
    method: 'GET',
    status: 404,
    code: 'model_not_found',
  },
};

for (const [name, testCase] of Object.entries(cases)) {
  test.serial(`${name}: ${testCase.status} ${testCase.code}, and nothing is stored`, async (t) => {
    await expectNothingStored(t, async () => {
      const { path, body, method = 'POST' } = testCase;
      const key = testCase.apiKey === undefined ? account.apiKey : testCase.apiKey;
      const response = await fetch(`${stack.url}${path}`, {
        method,
        headers: {
          ...(body === undefined ? {} : { 'content-type': json }),
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...testCase.headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      checkError(t, response.status, await response.text(), testCase);
      t.regex(response.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
      t.regex(response.headers.get('content-type') ?? '', /^application\/json/);
    });
  });
}

const wrongMethods: Readonly<Record<string, readonly [method: string, path: string, allowed: string]>> = {
  'a GET for chats': ['GET', chat, 'POST'],
  'a PUT for embeddings': ['PUT', embeddings, 'POST'],
  'a DELETE for images': ['DELETE', images, 'POST'],
  'a POST for models': ['POST', '/v1/models', 'GET'],
  'a POST for one model': ['POST', '/v1/models/vendor/gpt', 'GET'],
  'a PATCH for the profile': ['PATCH', '/v1/users/profile', 'GET'],
};
for (const [name, [method, path, allowed]] of Object.entries(wrongMethods)) {
  test.serial(`${name}: a 405 with the allowed method`, async (t) => {
    await expectNothingStored(t, async () => {
      const response = await fetch(`${stack.url}${path}`, { method });
      t.true((response.headers.get('allow') ?? '').split(/, */).includes(allowed));
      checkError(t, response.status, await response.text(), { status: 405, code: 'method_not_allowed' });
      t.truthy(response.headers.get('x-request-id'));
    });
  });
}

test.serial('no content type: 415', async (t) => {
  await expectNothingStored(t, async () => {
    const { status, body } = await send({
      path: chat,
      pieces: [Buffer.from('{"model":"chat"}')],
      headers: {},
    });
    checkError(t, status, body, {
      status: 415,
      code: 'unsupported_media_type',
      messagePattern: /Content-Type/,
    });
  });
});

test.serial('no body: 422 or 415', async (t) => {
  await expectNothingStored(t, async () => {
    const { status, body } = await send({ path: chat, pieces: [], headers: { 'content-type': json } });
    t.true(status === 422 || status === 415, `${status} ${body}`);
  });
});

test.serial('all errors of a request are reported, not only the first', async (t) => {
  const response = await stack.post(chat, account.apiKey, { model: 5, messages: [{ role: 'x' }], top_p: 9 });
  const { detail } = (await response.json()) as { detail: { loc: unknown[] }[] };
  t.deepEqual(
    new Set(detail.map((issue) => issue.loc.join('.'))),
    new Set(['body.model', 'body.messages.0.role', 'body.top_p']),
  );
});

test.serial('the same error in two messages is reported for both', async (t) => {
  const messages = [5, 6].map((content) => ({ role: 'user', content }));
  const response = await stack.post(chat, account.apiKey, { model: 'chat', messages });
  t.is(response.status, 422);
  const body = (await response.json()) as { error: { message: string }; detail: { loc: unknown[] }[] };
  t.deepEqual(
    body.detail.map((issue) => issue.loc),
    [
      ['body', 'messages', 0, 'content'],
      ['body', 'messages', 1, 'content'],
    ],
  );
  t.regex(body.error.message, /messages\.0\.content/);
});

// Bodies over the limit

/**
 * Writes the whole request before it reads the response, as simple clients do. Uses a plain socket, because Node's
 * HTTP client would stop writing on an early response. Rejects if the connection is reset.
 */
async function send(options: {
  path: string;
  pieces: readonly Buffer[];
  headers: Readonly<Record<string, string>>;
  isChunked?: boolean;
}): Promise<RawResponse> {
  const { path, pieces, isChunked = false } = options;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const headers = {
    host: 'gateway',
    connection: 'close',
    authorization: `Bearer ${account.apiKey}`,
    ...(isChunked
      ? { 'transfer-encoding': 'chunked' }
      : length > 0
        ? { 'content-length': String(length) }
        : {}),
    ...options.headers,
  };
  const { socket, closed, responses } = await openRaw(stack.url);
  const reset = new Promise<never>((_, reject) => socket.once('error', reject));
  reset.catch(() => undefined);
  const write = async (data: Buffer | string): Promise<void> => {
    if (!socket.write(data)) await Promise.race([once(socket, 'drain'), closed, reset]);
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  await write(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n`);
  for (const piece of pieces) {
    if (isChunked) await write(`${piece.length.toString(16)}\r\n`);
    await write(piece);
    if (isChunked) await write('\r\n');
  }
  if (isChunked) await write('0\r\n\r\n');
  await Promise.race([closed, reset]);
  return (await responses())[0]!;
}

const megabyte = Buffer.alloc(1_000_000, 'a');
const megabytes = (count: number): Buffer[] => Array.from({ length: count }, () => megabyte);
const start = Buffer.from('{"model":"vectors","input":"');

for (const [path, limitMb] of [
  [chat, 32],
  [images, 32],
  [embeddings, 80],
] as const) {
  for (const isChunked of [false, true]) {
    const framing = isChunked ? 'chunked' : 'with a content-length';
    test.serial(
      `${path}: a body over ${limitMb} MB, ${framing}, is a 413 that the client can read`,
      async (t) => {
        await expectNothingStored(t, async () => {
          const pieces = [start, ...megabytes(limitMb + 4)];
          const sent = await send({ path, pieces, headers: { 'content-type': json }, isChunked });
          checkError(t, sent.status, sent.body, {
            status: 413,
            code: 'payload_too_large',
            messagePattern: new RegExp(`${limitMb} MB`),
          });
          t.truthy(sent.headers['x-request-id']);
        });
      },
    );
  }
}

test.serial('a body just under the limit is not a 413', async (t) => {
  await expectNothingStored(t, async () => {
    const pieces = [start, ...megabytes(31), Buffer.from('"}')];
    const { status, body } = await send({ path: chat, pieces, headers: { 'content-type': json } });
    // The missing messages are the only error: the body was read.
    checkError(t, status, body, { status: 422, code: 'validation_failed' });
  });
});

test.serial('a client that sends a wrong key with a large body can read its 401', async (t) => {
  const body = Buffer.concat([start, ...megabytes(30)]);
  const headers = { 'content-type': json, authorization: 'Bearer mg-wrong' };
  const response = await fetch(`${stack.url}${chat}`, { method: 'POST', headers, body });
  t.is(response.status, 401);
});

// HTTP/1.0 clients and proxies (nginx by default) close the connection after each response.
test.serial('a client that sends Connection: close and a wrong key can read its 401 too', async (t) => {
  const headers = { 'content-type': json, authorization: 'Bearer mg-wrong', connection: 'close' };
  const { status } = await send({ path: chat, pieces: [start, ...megabytes(30)], headers });
  t.is(status, 401);
});

// Bodies that are valid JSON but expensive to validate: validation blocks the event loop.

test.serial('a body with ten thousand errors is rejected quickly', async (t) => {
  const messages = Array.from({ length: 10_000 }, () => ({ role: 'user', content: 5 }));
  const startedMs = readThreadMs();
  const response = await stack.post(chat, account.apiKey, { model: 'chat', messages });
  t.is(response.status, 422);
  const tookMs = readThreadMs() - startedMs;
  t.true(
    tookMs < 700,
    `took ${Math.round(tookMs)} ms: the time is probably quadratic in the number of errors`,
  );
});

test.serial('three million inputs of the wrong type are rejected quickly', async (t) => {
  const body = `{"model":"vectors","input":[${'1,'.repeat(2_999_999)}1]}`;
  const startedMs = readThreadMs();
  const response = await stack.post(embeddings, account.apiKey, body);
  t.is(response.status, 422);
  const tookMs = readThreadMs() - startedMs;
  t.true(tookMs < 1_000, `took ${Math.round(tookMs)} ms for 6 MB, although bodies may have up to 80 MB`);
});

test.serial('a body nested 20 000 levels deep is a 200 or a 422, but not a 500', async (t) => {
  const deep = `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`;
  const unknownField = `{"model":"chat","messages":[{"role":"user","content":"hi"}],"metadata":${deep}}`;
  const tool = `{"model":"chat","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":${deep}}}]}`;
  for (const body of [unknownField, tool]) {
    const response = await stack.post(chat, account.apiKey, body);
    t.true(response.status === 200 || response.status === 422, `${response.status} ${await response.text()}`);
  }
  await waitForNoReservation(stack, account.id);
});

test.serial('twenty thousand nested arrays instead of a string are a 422', async (t) => {
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  const response = await stack.post(embeddings, account.apiKey, `{"model":"vectors","input":${deep}}`);
  t.is(response.status, 422);
});

const accepted: Readonly<Record<string, object>> = {
  'unknown fields': { some_new_field: { a: [1] }, store: false },
  'null for every optional field': {
    max_tokens: null,
    temperature: null,
    top_p: null,
    stream: null,
    stream_options: null,
    tools: null,
    tool_choice: null,
    stop: null,
    n: null,
    web_search: null,
    reasoning_effort: null,
    user: null,
  },
  'null content': { messages: [...hello, { role: 'assistant', content: null }, ...hello] },
  'no content': { messages: [...hello, { role: 'assistant' }, ...hello] },
  'an image as a data URI': {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what is this' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,iVBORw0KGgoA${'A'.repeat(4_000)}` } },
        ],
      },
    ],
  },
  'an image over https': {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what is this' },
          { type: 'image_url', image_url: { url: 'https://x.example/a.png' } },
        ],
      },
    ],
  },
  'a thousand messages': {
    messages: Array.from({ length: 1_000 }, (_, i) => ({ role: i % 2 ? 'user' : 'assistant', content: 'x' })),
  },
  'a temperature of 2': { temperature: 2 },
  'max_tokens of 0': { max_tokens: 0 },
  'special tokens as text': { messages: [{ role: 'user', content: '<|endoftext|><|im_start|>' }] },
  'a key that could cause prototype pollution': {
    metadata: { constructor: { prototype: { polluted: true } } },
  },
};
for (const [name, more] of Object.entries(accepted)) {
  test.serial(`a chat with ${name} succeeds`, async (t) => {
    const response = await stack.post(chat, account.apiKey, { model: 'chat', messages: hello, ...more });
    t.is(response.status, 200, await response.text());
  });
}

test.serial(
  'JSON with another content type, such as application/vnd.acme+json, is read as JSON or is a 415',
  async (t) => {
    for (const type of ['application/vnd.acme+json', 'application/json; charset=utf-8', 'Application/JSON']) {
      const body = { model: 'chat', messages: hello };
      const response = await stack.post(chat, account.apiKey, body, { 'content-type': type });
      t.true([200, 415].includes(response.status), `${type}: ${response.status} ${await response.text()}`);
    }
  },
);

test.serial('after all of these requests, no reservation remains and the service responds', async (t) => {
  await waitForNoReservation(stack);
  const response = await stack.post(chat, account.apiKey, { model: 'chat', messages: hello });
  t.is(response.status, 200);
});
