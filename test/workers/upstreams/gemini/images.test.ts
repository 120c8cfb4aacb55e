import test from 'ava';

import { fromImageResponse } from '../../../../workers/upstreams/gemini/from-image-response.ts';
import { toImageRequest } from '../../../../workers/upstreams/gemini/to-image-request.ts';
import {
  type ImageCall,
  type InputImage,
  noUpstreamUsage,
  UpstreamError,
  type UpstreamFailure,
  type UpstreamTarget,
} from '../../../../workers/upstreams/upstream.ts';
import { createImageCall, createTarget } from '../../../support/upstream-target.ts';

const CALL = createImageCall({ n: 2, user: 'u' });
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNwav0CAALIAbzDqqRyAAAAAElFTkSuQmCC';

const toRequest = (target: UpstreamTarget, call: ImageCall) => toImageRequest(target, call, 'account');

test('an image is requested without text output, in its aspect ratio, with style and negative prompt as part of the prompt', async (t) => {
  const target = createTarget('gemini-2.5-flash-image');
  t.deepEqual(await toRequest(target, CALL), {
    contents: [{ role: 'user', parts: [{ text: 'a cat' }] }],
    generationConfig: { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: '1:1' } },
  });
  const call = { ...CALL, style: 'vivid', negativePrompt: 'dogs', size: '1792x1024', quality: '2K' };
  t.deepEqual(await toRequest(target, call), {
    contents: [{ role: 'user', parts: [{ text: 'a cat\n\nStyle: vivid.\n\nAvoid: dogs.' }] }],
    generationConfig: {
      responseModalities: ['IMAGE'],
      imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
    },
  });
  const dropping = createTarget('m', { drops: new Set(['size', 'quality', 'style']) });
  t.deepEqual(await toRequest(dropping, call), {
    contents: [{ role: 'user', parts: [{ text: 'a cat\n\nAvoid: dogs.' }] }],
    generationConfig: { responseModalities: ['IMAGE'] },
  });
});

const input = (bytes: Buffer): InputImage => ({ bytes, contentType: 'image/png', width: 1, height: 1 });

test('images to edit are sent before the prompt as bytes, in the caller’s order', async (t) => {
  const [first, second] = [Buffer.from('first'), Buffer.from('second')];
  const jpeg = { ...input(second), contentType: 'image/jpeg' } as const;
  const request = await toRequest(createTarget('m'), { ...CALL, inputs: [input(first), jpeg] });
  t.deepEqual(request['contents'], [
    {
      role: 'user',
      parts: [
        { inlineData: { mimeType: 'image/png', data: first.toString('base64') } },
        { inlineData: { mimeType: 'image/jpeg', data: second.toString('base64') } },
        { text: 'a cat' },
      ],
    },
  ]);
});

test('a mask, or more than 20 MB of images, is rejected before anything is sent', async (t) => {
  const one = input(Buffer.from('one'));
  const refused = {
    instanceOf: UpstreamError,
    message: 'The model does not support masks and edits the whole image.',
  };
  const masked = { ...CALL, inputs: [one], mask: one };
  t.is((await t.throwsAsync(toRequest(createTarget('m'), masked), refused)).failure, 'rejected');
  const half = input(Buffer.alloc(7_500_001));
  await t.notThrowsAsync(toRequest(createTarget('m'), { ...CALL, inputs: [half] }));
  await t.throwsAsync(toRequest(createTarget('m'), { ...CALL, inputs: [half, half] }), {
    instanceOf: UpstreamError,
    message: 'The model accepts at most 20 MB of base64-encoded images per request.',
  });
  const dropping = createTarget('m', { drops: new Set(['mask']) });
  t.regex(JSON.stringify(await toRequest(dropping, masked)), /inlineData/);
});

const read = (response: object): ReturnType<typeof fromImageResponse> =>
  fromImageResponse({ ...response }, 'key', 'account');
const toResponse = (parts: object[], more: object = {}): object => ({
  candidates: [{ content: { parts, role: 'model' }, finishReason: 'STOP' }],
  ...more,
});

test('the first image of a response is used, with the type of its bytes and its usage', async (t) => {
  const response = await read(
    toResponse(
      [
        { inlineData: { mimeType: 'image/png', data: 'ZHJhZnQ=' }, thought: true },
        { text: 'Here it is' },
        { inlineData: { mimeType: 'image/jpeg', data: PNG } },
        { inlineData: { mimeType: 'image/png', data: 'c2Vjb25k' } },
      ],
      { usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1290, thoughtsTokenCount: 10 } },
    ),
  );
  t.deepEqual(response, {
    images: [{ bytes: Buffer.from(PNG, 'base64'), contentType: 'image/png', revisedPrompt: null }],
    calls: 1,
    usage: { ...noUpstreamUsage, promptTokens: 3, completionTokens: 1300, reasoningTokens: 10 },
  });
  t.is((await read(toResponse([{ inlineData: { data: PNG } }]))).usage, null);
});

test('a response without an image is a rejected failure if the vendor refused, and otherwise an unavailable failure', async (t) => {
  const responses: [object, UpstreamFailure][] = [
    [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, 'rejected'],
    [{ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 'rejected'],
    [{ candidates: [{ finishReason: 'RECITATION' }] }, 'rejected'],
    [{ candidates: [{ finishReason: 'NO_IMAGE' }] }, 'unavailable'],
    [toResponse([{ text: 'I would rather not' }]), 'unavailable'],
    [toResponse([{ inlineData: { mimeType: 'image/png', data: 'bm90IGEgcGljdHVyZQ==' } }]), 'unavailable'],
    [{}, 'unavailable'],
    [{ error: { code: 503, status: 'UNAVAILABLE' } }, 'unavailable'],
  ];
  for (const [response, failure] of responses) {
    const error = await t.throwsAsync(
      read(response),
      { instanceOf: UpstreamError },
      JSON.stringify(response),
    );
    t.is(error?.failure, failure, JSON.stringify(response));
  }
});

test('if the model ends its response without an image and the vendor reported usage, the response is accepted', async (t) => {
  const usageMetadata = { promptTokenCount: 10_000, candidatesTokenCount: 40 };
  const usage = { ...noUpstreamUsage, promptTokens: 10_000, completionTokens: 40 };
  for (const [body, reason] of [
    [toResponse([{ text: 'I would rather not' }]), 'stopped without generating this image (STOP)'],
    [{ candidates: [{ finishReason: 'NO_IMAGE' }] }, 'stopped without generating this image (NO_IMAGE)'],
    [{ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 'refused to generate this image (IMAGE_SAFETY)'],
    [{ promptFeedback: { blockReason: 'OTHER' } }, 'refused to generate this image (OTHER)'],
  ] as const) {
    const response = await read({ ...body, usageMetadata });
    t.like(response, {
      images: [],
      usage,
      shortfallReason: { failure: 'rejected', message: `The model ${reason}.` },
    });
  }
  const cutOff = { candidates: [{ content: { parts: [{ text: 'Hm' }] } }], usageMetadata };
  t.like(await t.throwsAsync(read(cutOff)), { failure: 'unavailable' }, 'it did not finish');
  const nothing = { candidates: [{ finishReason: 'NO_IMAGE' }], usageMetadata: { promptTokenCount: 0 } };
  t.like(await t.throwsAsync(read(nothing)), { failure: 'unavailable' }, 'it has no usage');
});

test('a count of zero tokens is treated as unknown, so that a sum over several calls is not too low', async (t) => {
  const readCounts = async (promptTokenCount: number, candidatesTokenCount: number) =>
    await read(
      toResponse([{ inlineData: { data: PNG } }], {
        usageMetadata: { promptTokenCount, candidatesTokenCount },
      }),
    );
  const responses = [await readCounts(3, 5), await readCounts(3, 0), await readCounts(0, 0)];
  t.deepEqual(
    responses.map(({ usage }) => usage && [usage.promptTokens, usage.completionTokens]),
    [[3, 5], [3, null], null],
  );
});
