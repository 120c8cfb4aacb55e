import test from 'ava';
import sharp from 'sharp';

import { startVendorSimulator, type VendorSimulator } from '../../../scripts/vendor-simulator/simulator.ts';
import { makePng } from '../../../scripts/vendor-simulator/tiny-png.ts';
import { createGeminiUpstream } from '../../../workers/upstreams/gemini/gemini-upstream.ts';
import { createOpenAiUpstream } from '../../../workers/upstreams/openai/openai-upstream.ts';
import type { ImageResponse, ImageCall, InputImage, Upstream } from '../../../workers/upstreams/upstream.ts';
import { createContext, createImageCall, createTarget } from '../../support/upstream-target.ts';

/** Image edits at simulated vendors, which reject what real ones reject. */

let simulator: VendorSimulator;
let openAi: Upstream;
let gemini: Upstream;

test.before(async () => {
  simulator = await startVendorSimulator();
  openAi = createOpenAiUpstream({ baseUrl: `${simulator.url}/v1` });
  gemini = createGeminiUpstream({ baseUrl: simulator.url });
});
test.after.always(async () => {
  await simulator.close();
  await openAi.close();
  await gemini.close();
});

const bytes = makePng(8, 8, [1, 2, 3]);
const input: InputImage = { bytes, contentType: 'image/png', width: 8, height: 8 };

function make(upstream: Upstream, model: string, more: Partial<ImageCall> = {}): Promise<ImageResponse> {
  const call = createImageCall({ inputs: [input], ...more });
  return upstream.generateImages!(createTarget(model), call, createContext());
}

test('OpenAI models edit one image or several, with a mask and all options', async (t) => {
  const options = {
    background: 'transparent',
    moderation: 'low',
    outputFormat: 'webp',
    outputCompression: 80,
    inputFidelity: 'high',
  } as const;
  for (const model of ['gpt-image-1', 'gpt-image-2', 'dall-e-2', 'flux-kontext']) {
    const inputs = model === 'dall-e-2' ? [input] : [input, input];
    const { images } = await make(openAi, model, { inputs, mask: input, options, n: 2, style: 'vivid' });
    t.is(images.length, 2, model);
    await t.notThrowsAsync(sharp(images[0]?.bytes).metadata());
  }
  const { usage } = await make(openAi, 'gpt-image-1', { n: 2 });
  t.like(usage, { promptTokens: 2 + 272, completionTokens: 2 * 1056 });
});

test('an edit is streamed with its previews', async (t) => {
  const previews: number[] = [];
  const { images, usage } = await make(openAi, 'gpt-image-1', {
    partialImages: 3,
    async onPartial({ index }) {
      previews.push(index);
    },
  });
  t.deepEqual(previews, [0, 1, 2]);
  t.is(images.length, 1);
  t.like(usage, { promptTokens: 2 + 272, completionTokens: 1056 });
});

test('Gemini edits the given images, and makes one image per call', async (t) => {
  const { images, calls } = await make(gemini, 'gemini-sim-edits', { n: 3 });
  t.is(images.length, 3);
  t.is(calls, 3);
  const entry = simulator.requests.entries.findLast(({ model }) => model === 'gemini-sim-edits');
  t.regex(JSON.stringify(entry?.body), /"inlineData":\{"mimeType":"image\/png"/);
});

test('anything that a vendor sends instead of an image is a vendor error', async (t) => {
  for (const fault of ['textimage', 'brokenimage']) {
    t.like(await t.throwsAsync(make(openAi, `gpt-image-1+${fault}`)), { failure: 'unavailable' }, fault);
    t.like(await t.throwsAsync(make(gemini, `gemini-sim+${fault}`)), { failure: 'unavailable' }, fault);
  }
  const cut = make(openAi, 'gpt-image-1+cut-1', { partialImages: 2 });
  t.like(await t.throwsAsync(cut), { failure: 'unavailable', mayStillRun: true });
  const failed = make(openAi, 'gpt-image-1+streamerror-1', { partialImages: 2 });
  t.like(await t.throwsAsync(failed), { failure: 'unavailable', mayStillRun: false });
  const unfinished = make(openAi, 'gpt-image-1+nofinish', { partialImages: 2 });
  t.like(await t.throwsAsync(unfinished), { failure: 'unavailable', mayStillRun: true });
});

test('if some of several calls fail, only the successful ones are counted, their images are returned, and the failure is reported', async (t) => {
  const some = await make(openAi, 'dall-e-3+flaky-50', { inputs: [], n: 10 });
  t.true(some.images.length > 0 && some.images.length < 10, String(some.images.length));
  t.is(some.calls, some.images.length);
  t.is(some.shortfallReason?.failure, 'unavailable');
});
