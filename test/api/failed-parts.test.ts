import test from 'ava';
import type { LoggedRequest } from '../../scripts/vendor-simulator/request-log.ts';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { ScriptedRefusal, startScriptedVendor, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { startStack, type TestStack } from '../support/stack.ts';

/** Requests that fail in part because of their own input: callers pay for the vendor's work on the other parts. */

const nanoPerToken = 1_000_000n;
const tinyPng =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNwav0CAALIAbzDqqRyAAAAAElFTkSuQmCC';
const imageResponse = {
  candidates: [
    { content: { parts: [{ inlineData: { mimeType: 'image/png', data: tinyPng } }] }, finishReason: 'STOP' },
  ],
};
const usageOf = (promptTokenCount: number, candidatesTokenCount: number): object => ({
  usageMetadata: { promptTokenCount, candidatesTokenCount },
});
const textOnly = {
  candidates: [{ content: { parts: [{ text: 'I would rather write' }] }, finishReason: 'STOP' }],
  ...usageOf(100, 20),
};
const rejected = { candidates: [{ finishReason: 'IMAGE_SAFETY' }], usageMetadata: { promptTokenCount: 5 } };
const malformed = { finishReason: 'MALFORMED_FUNCTION_CALL', index: 0 };

let simulator: VendorSimulator;
let scripted: ScriptedVendor;
let stack: TestStack;
/** Responses of the scripted vendor's models, in order; the last one is repeated. */
const scripts: Record<string, object[]> = {
  'some-refused': [imageResponse, rejected, imageResponse, imageResponse],
  'all-refused': [rejected],
  'all-text': [textOnly],
  mixed: [
    { ...imageResponse, ...usageOf(100, 1_290) },
    textOnly,
    { candidates: [{ finishReason: 'IMAGE_SAFETY' }], ...usageOf(100, 1_290) },
    new ScriptedRefusal(503, {}),
  ],
  'images-without-usage': [imageResponse, imageResponse, new ScriptedRefusal(503, {}), imageResponse],
  uncounted: [{ candidates: [{ finishReason: 'NO_IMAGE' }] }],
  counted: [
    {
      candidates: [malformed],
      usageMetadata: { promptTokenCount: 7, thoughtsTokenCount: 10_000, candidatesTokenCount: 5 },
    },
  ],
  'not-counted': [
    { candidates: [malformed] },
    { candidates: [{ content: { parts: [{ text: 'Yes' }] }, finishReason: 'STOP' }] },
  ],
};
const calledModels: string[] = [];

test.before(async () => {
  simulator = await startVendorSimulator();
  scripted = await startScriptedVendor((_, path) => {
    const model = /models\/([^:]+):/.exec(path)![1]!;
    calledModels.push(model);
    const script = scripts[model]!;
    return script.length > 1 ? script.shift()! : script[0]!;
  });
  const chat = (id: string): string =>
    `  - { id: ${id}, type: chat, context: 128000, pricing: { prompt: 1000, completion: 1000 }, routes: [{ upstream: gemini }] }`;
  const image = (id: string, pricing = 'type: image, cost_per_image: 2, free_requests: true'): string =>
    `  - { id: ${id}, type: image, context: 8192, max_output_tokens: 2000, max_image_count: 4, pricing: { ${pricing} }, routes: [{ upstream: gemini }] }`;
  const byTokens = 'prompt: 1000, completion: 1000';
  stack = await startStack({
    catalog: `
upstreams:
  narrow: { kind: openai, baseUrl: "${simulator.url}/v1", maxConcurrency: 1, maxBatchInputs: 10 }
  broken: { kind: openai, baseUrl: "${simulator.url}/v1", maxConcurrency: 1, maxBatchInputs: 10 }
  gemini: { kind: gemini, baseUrl: "${scripted.url}" }
models:
  - { id: vectors, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { prompt: 1000 }, routes: [{ upstream: narrow, model: emb+poison }] }
  - { id: overflowing, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { prompt: 1000 }, routes: [{ upstream: broken, model: emb+overflow }] }
${chat('counted')}
${chat('not-counted')}
${image('some-refused')}
${image('all-refused')}
${image('all-text', byTokens)}
${image('mixed', byTokens)}
${image('uncounted', byTokens)}
${image('images-without-usage', byTokens)}
`,
  });
});
test.after.always(async () => {
  await stack.close();
  await simulator.close();
  await scripted.close();
});

const inputsOf = (entry: LoggedRequest): string[] => (entry.body as { input: string[] }).input;
const callsOf = (vendorModel: string): string[][] =>
  simulator.requests.entries.filter(({ model }) => model === vendorModel).map(inputsOf);

interface ResponseBody {
  readonly data?: readonly object[];
  readonly choices?: readonly object[];
  readonly error?: { readonly code: string; readonly message: string };
}

async function send(path: string, body: object, freeRequests = 0) {
  const account = await stack.createAccount({ freeRequests });
  const response = await stack.post(path, account.apiKey, body);
  const result = (await response.json()) as ResponseBody;
  await waitForNoReservation(stack, account.id);
  const row = await findRow(stack, response.headers.get('x-request-id')!);
  const charged = await readAmountCharged(stack, account.id, '100');
  return { status: response.status, result, row, charged, accountId: account.id };
}

test('if the vector of an input is not finite, the inputs already embedded are charged, and the waiting ones are not sent', async (t) => {
  const input = Array.from({ length: 60 }, (_, i) => (i === 25 ? 'overflow 25' : `text ${i}`));
  const { status, result, row, charged } = await send('/v1/embeddings', { model: 'overflowing', input });
  t.is(status, 400);
  t.is(result.error!.code, 'upstream_rejected');
  t.is(
    result.error!.message,
    'The model returned a vector with non-finite numbers for input.25. (29 of 60 inputs were embedded and charged.)',
  );
  t.deepEqual(callsOf('emb+overflow'), [input.slice(0, 10), input.slice(10, 20), input.slice(20, 30)]);
  t.is(charged, 58n * nanoPerToken);
  t.like(row, { success: false, errorCode: 'upstream_rejected', responseCode: 400, promptTokens: 58 });
});

test('if an input is rejected, the inputs already embedded are charged, and the waiting ones are not sent', async (t) => {
  const input = Array.from({ length: 60 }, (_, i) => (i === 25 ? 'poison 25' : `text ${i}`));
  const { status, result, row, charged } = await send('/v1/embeddings', { model: 'vectors', input });
  t.is(status, 400);
  t.is(result.error!.code, 'upstream_rejected');
  t.regex(result.error!.message, /refuses.*20 of 60 inputs were embedded and charged/);
  t.deepEqual(callsOf('emb+poison'), [input.slice(0, 10), input.slice(10, 20), input.slice(20, 30)]);
  t.is(charged, 40n * nanoPerToken);
  t.like(row, { success: false, errorCode: 'upstream_rejected', responseCode: 400, promptTokens: 40 });
  t.is(row.details, result.error!.message);
  t.is(row.characters, input.slice(0, 20).join('').length);
});

test('if one of several images is rejected, the others are returned and charged at their price', async (t) => {
  const { status, result, row, charged } = await send('/v1/images/generations', {
    model: 'some-refused',
    prompt: 'a cat',
    n: 4,
    response_format: 'b64_json',
  });
  t.is(status, 200);
  t.is(result.data!.length, 3);
  t.is(calledModels.filter((model) => model === 'some-refused').length, 4);
  t.is(charged, 3n * 2_000_000_000n);
  t.like(row, { success: true, images: 3 });
  t.is(row.details, '3 of 4 images were generated: The model refused to generate this image (IMAGE_SAFETY).');
});

test('if all images of a request are rejected, it fails, is not charged, and is not retried', async (t) => {
  const body = { model: 'all-refused', prompt: 'a cat', n: 4 };
  const { status, result, row, charged, accountId } = await send('/v1/images/generations', body, 1);
  t.is(status, 400);
  t.is(result.error!.code, 'upstream_rejected');
  t.is(calledModels.filter((model) => model === 'all-refused').length, 4);
  t.is(charged, 0n);
  t.like(row, { success: false, images: 0 });
  t.is((await stack.readAccount(accountId)).freeRequests, 1);
});

test('if a model priced per token responds without an image, the caller pays for the reported tokens, and the call is not retried', async (t) => {
  const body = { model: 'all-text', prompt: 'a cat', n: 4 };
  const { status, result, row, charged } = await send('/v1/images/generations', body);
  t.is(status, 400);
  t.is(result.error!.code, 'upstream_rejected');
  t.is(
    result.error!.message,
    'The model stopped without generating this image (STOP). (You are charged for this call.)',
  );
  t.is(calledModels.filter((model) => model === 'all-text').length, 4);
  t.is(charged, 4n * 120n * nanoPerToken);
  t.like(row, {
    success: false,
    errorCode: 'upstream_rejected',
    images: 0,
    counted: false,
    promptTokens: 400,
    completionTokens: 80,
  });
});

test('if some images are not generated, the caller still pays for all tokens that the vendor counted', async (t) => {
  const body = { model: 'mixed', prompt: 'a cat', n: 4, response_format: 'b64_json' };
  const { status, result, row, charged } = await send('/v1/images/generations', body);
  t.is(status, 200);
  t.is(result.data!.length, 1);
  t.is(calledModels.filter((model) => model === 'mixed').length, 4);
  t.is(charged, (300n + 1_290n + 20n + 1_290n) * nanoPerToken);
  t.like(row, { success: true, counted: false, images: 1, promptTokens: 300, completionTokens: 2_600 });
});

test('if the vendor reports no usage for images, the caller pays for them and for the prompt of each successful call', async (t) => {
  const body = { model: 'images-without-usage', prompt: 'a red fox', n: 4, response_format: 'b64_json' };
  const { status, row, charged } = await send('/v1/images/generations', body);
  t.is(status, 200);
  const [promptTokens, completionTokens] = [3 * 3, 3 * 1_290];
  t.like(row, { counted: true, images: 3, promptTokens, completionTokens });
  t.is(charged, BigInt(promptTokens + completionTokens) * nanoPerToken);
});

test('a response with neither an image nor usage is retried and not charged', async (t) => {
  const body = { model: 'uncounted', prompt: 'a cat', n: 2 };
  const { status, charged } = await send('/v1/images/generations', body);
  t.is(status, 502);
  t.is(calledModels.filter((model) => model === 'uncounted').length, 6);
  t.is(charged, 0n);
});

const chatOf = (model: string): object => ({
  model,
  messages: [{ role: 'user', content: 'hi' }],
  max_tokens: 20_000,
});

test('if the model breaks off a response that reports usage, this usage is billed, and the call is not retried', async (t) => {
  const { status, result, row, charged } = await send('/v1/chat/completions', chatOf('counted'));
  t.is(status, 200);
  t.like(result.choices![0], {
    message: { content: '' },
    finish_reason: 'stop',
    native_finish_reason: 'MALFORMED_FUNCTION_CALL',
  });
  t.is(calledModels.filter((model) => model === 'counted').length, 1);
  t.is(charged, (7n + 10_005n) * nanoPerToken);
  t.like(row, { success: true, counted: false, promptTokens: 7, completionTokens: 10_005 });
});

test('if the model breaks off a response that reports no usage, the call is retried', async (t) => {
  const { status, result } = await send('/v1/chat/completions', chatOf('not-counted'));
  t.is(status, 200);
  t.like(result.choices![0], { message: { content: 'Yes' }, finish_reason: 'stop' });
  t.is(calledModels.filter((model) => model === 'not-counted').length, 2);
});
