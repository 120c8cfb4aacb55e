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

const ask = (target: UpstreamTarget, call: ImageCall) => toImageRequest(target, call, 'account');

test('an image is requested without text, with its aspect ratio, and with style and negative prompt in the prompt', async (t) => {
  const target = createTarget('gemini-2.5-flash-image');
  t.deepEqual(await ask(target, CALL), {
    contents: [{ role: 'user', parts: [{ text: 'a cat' }] }],
    generationConfig: { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: '1:1' } },
  });
  const call = { ...CALL, style: 'vivid', negativePrompt: 'dogs', size: '1792x1024', quality: '2K' };
  t.deepEqual(await ask(target, call), {
    contents: [{ role: 'user', parts: [{ text: 'a cat\n\nStyle: vivid.\n\nAvoid: dogs.' }] }],
    generationConfig: {
      responseModalities: ['IMAGE'],
      imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
    },
  });
  const dropping = createTarget('m', { drops: new Set(['size', 'quality', 'style']) });
  t.deepEqual(await ask(dropping, call), {
    contents: [{ role: 'user', parts: [{ text: 'a cat\n\nAvoid: dogs.' }] }],
    generationConfig: { responseModalities: ['IMAGE'] },
  });
});

const input = (bytes: Buffer): InputImage => ({ bytes, contentType: 'image/png', width: 1, height: 1 });

test('input images are sent before the prompt as bytes, in the caller’s order', async (t) => {
  const [first, second] = [Buffer.from('first'), Buffer.from('second')];
  const jpeg = { ...input(second), contentType: 'image/jpeg' } as const;
  const request = await ask(createTarget('m'), { ...CALL, inputs: [input(first), jpeg] });
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
  const refused = { instanceOf: UpstreamError, message: 'The model takes no mask and edits whole images.' };
  const masked = { ...CALL, inputs: [one], mask: one };
  t.is((await t.throwsAsync(ask(createTarget('m'), masked), refused)).failure, 'rejected');
  const half = input(Buffer.alloc(7_500_001));
  await t.notThrowsAsync(ask(createTarget('m'), { ...CALL, inputs: [half] }));
  await t.throwsAsync(ask(createTarget('m'), { ...CALL, inputs: [half, half] }), {
    instanceOf: UpstreamError,
    message: 'The model takes images of up to 20 MB in base64 in one request.',
  });
  const dropping = createTarget('m', { drops: new Set(['mask']) });
  t.regex(JSON.stringify(await ask(dropping, masked)), /inlineData/);
});

const read = (answer: object): ReturnType<typeof fromImageResponse> =>
  fromImageResponse({ ...answer }, 'key', 'account');
const draw = (parts: object[], more: object = {}): object => ({
  candidates: [{ content: { parts, role: 'model' }, finishReason: 'STOP' }],
  ...more,
});

test('the first image of a response is returned, with the type of its bytes and its usage', async (t) => {
  const answer = await read(
    draw(
      [
        { inlineData: { mimeType: 'image/png', data: 'ZHJhZnQ=' }, thought: true },
        { text: 'Here it is' },
        { inlineData: { mimeType: 'image/jpeg', data: PNG } },
        { inlineData: { mimeType: 'image/png', data: 'c2Vjb25k' } },
      ],
      { usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1290, thoughtsTokenCount: 10 } },
    ),
  );
  t.deepEqual(answer, {
    images: [{ bytes: Buffer.from(PNG, 'base64'), contentType: 'image/png', revisedPrompt: null }],
    calls: 1,
    usage: { ...noUpstreamUsage, promptTokens: 3, completionTokens: 1300, reasoningTokens: 10 },
  });
  t.is((await read(draw([{ inlineData: { data: PNG } }]))).usage, null);
});

test('a response without an image is rejected if the vendor declined, otherwise unavailable', async (t) => {
  const answers: [object, UpstreamFailure][] = [
    [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, 'rejected'],
    [{ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 'rejected'],
    [{ candidates: [{ finishReason: 'RECITATION' }] }, 'rejected'],
    [{ candidates: [{ finishReason: 'NO_IMAGE' }] }, 'unavailable'],
    [draw([{ text: 'I would rather not' }]), 'unavailable'],
    [draw([{ inlineData: { mimeType: 'image/png', data: 'bm90IGEgcGljdHVyZQ==' } }]), 'unavailable'],
    [{}, 'unavailable'],
    [{ error: { code: 503, status: 'UNAVAILABLE' } }, 'unavailable'],
  ];
  for (const [answer, failure] of answers) {
    const error = await t.throwsAsync(read(answer), { instanceOf: UpstreamError }, JSON.stringify(answer));
    t.is(error?.failure, failure, JSON.stringify(answer));
  }
});

test('a finish without an image that the model itself reports is a response if its vendor reported usage', async (t) => {
  const usageMetadata = { promptTokenCount: 10_000, candidatesTokenCount: 40 };
  const usage = { ...noUpstreamUsage, promptTokens: 10_000, completionTokens: 40 };
  for (const [body, why] of [
    [draw([{ text: 'I would rather not' }]), 'ended without making this picture (STOP)'],
    [{ candidates: [{ finishReason: 'NO_IMAGE' }] }, 'ended without making this picture (NO_IMAGE)'],
    [{ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 'refused to make this picture (IMAGE_SAFETY)'],
    [{ promptFeedback: { blockReason: 'OTHER' } }, 'refused to make this picture (OTHER)'],
  ] as const) {
    const answer = await read({ ...body, usageMetadata });
    t.like(answer, { images: [], usage, missing: { failure: 'rejected', message: `The model ${why}.` } });
  }
  const cutOff = { candidates: [{ content: { parts: [{ text: 'Hm' }] } }], usageMetadata };
  t.like(await t.throwsAsync(read(cutOff)), { failure: 'unavailable' }, 'it is not complete');
  const nothing = { candidates: [{ finishReason: 'NO_IMAGE' }], usageMetadata: { promptTokenCount: 0 } };
  t.like(await t.throwsAsync(read(nothing)), { failure: 'unavailable' }, 'it has no usage');
});

test('a usage of zero tokens is ignored, so that one of several calls cannot hide input or output', async (t) => {
  const readCounts = async (promptTokenCount: number, candidatesTokenCount: number) =>
    await read(
      draw([{ inlineData: { data: PNG } }], { usageMetadata: { promptTokenCount, candidatesTokenCount } }),
    );
  const answers = [await readCounts(3, 5), await readCounts(3, 0), await readCounts(0, 0)];
  t.deepEqual(
    answers.map(({ usage }) => usage && [usage.promptTokens, usage.completionTokens]),
    [[3, 5], [3, null], null],
  );
});
