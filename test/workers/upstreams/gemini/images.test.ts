import { wordsAlone } from '../../../../shared/queue/job-kinds.ts';
import test from 'ava';

import {
  fromImageResponse,
  joinImageAnswers,
} from '../../../../workers/upstreams/gemini/from-image-response.ts';
import { toImageRequest } from '../../../../workers/upstreams/gemini/to-image-request.ts';
import {
  type ImageCall,
  noUpstreamUsage,
  UpstreamError,
  type UpstreamFailure,
} from '../../../../workers/upstreams/upstream.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const CALL: ImageCall = {
  prompt: 'a cat',
  negativePrompt: null,
  ...wordsAlone,
  n: 2,
  size: '1024x1024',
  quality: null,
  style: null,
  user: 'u',
};
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNwav0CAALIAbzDqqRyAAAAAElFTkSuQmCC';

test('a picture is asked for without words, in its shape, with style and what to avoid in the prompt', (t) => {
  const target = createTarget('gemini-2.5-flash-image');
  t.deepEqual(toImageRequest(target, CALL), {
    contents: [{ role: 'user', parts: [{ text: 'a cat' }] }],
    generationConfig: { responseModalities: ['IMAGE'], imageConfig: { aspectRatio: '1:1' } },
  });
  const call = {
    ...CALL,
    style: 'vivid',
    negativePrompt: 'dogs',
    ...wordsAlone,
    size: '1792x1024',
    quality: '2K',
  };
  t.deepEqual(toImageRequest(target, call), {
    contents: [{ role: 'user', parts: [{ text: 'a cat\n\nStyle: vivid.\n\nAvoid: dogs.' }] }],
    generationConfig: {
      responseModalities: ['IMAGE'],
      imageConfig: { aspectRatio: '16:9', imageSize: '2K' },
    },
  });
  const dropping = createTarget('m', { drops: new Set(['size', 'quality', 'style']) });
  t.deepEqual(toImageRequest(dropping, call), {
    contents: [{ role: 'user', parts: [{ text: 'a cat\n\nAvoid: dogs.' }] }],
    generationConfig: { responseModalities: ['IMAGE'] },
  });
});

const read = (answer: object): ReturnType<typeof fromImageResponse> =>
  fromImageResponse({ ...answer }, 'key', 'account');
const draw = (parts: object[], more: object = {}): object => ({
  candidates: [{ content: { parts, role: 'model' }, finishReason: 'STOP' }],
  ...more,
});

test('the first picture of an answer is taken, as what its bytes are, with what it took', async (t) => {
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

test('an answer without a picture is rejected where the vendor refused, else unavailable', async (t) => {
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

test('an end without a picture by the model’s own word is an answer where the vendor counted it', async (t) => {
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
  t.like(await t.throwsAsync(read(cutOff)), { failure: 'unavailable' }, 'it did not come to its end');
  const nothing = { candidates: [{ finishReason: 'NO_IMAGE' }], usageMetadata: { promptTokenCount: 0 } };
  t.like(await t.throwsAsync(read(nothing)), { failure: 'unavailable' }, 'it was not counted');
});

test('several answers are one, with their tokens added up where all have told them', async (t) => {
  const answer = await read(
    draw([{ inlineData: { data: PNG } }], {
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5 },
    }),
  );
  const made = { status: 'fulfilled', value: answer } as const;
  const joined = joinImageAnswers([made, made, made]);
  t.is(joined.images.length, 3);
  t.is(joined.calls, 3);
  t.deepEqual(joined.usage, { ...noUpstreamUsage, promptTokens: 9, completionTokens: 15 });
  t.is(joinImageAnswers([made, { ...made, value: { ...answer, usage: null } }]).usage, null);
});

test('a count of no tokens is none, so that one of several calls cannot hide what was read or drawn', async (t) => {
  const readCounts = async (promptTokenCount: number, candidatesTokenCount: number) =>
    await read(
      draw([{ inlineData: { data: PNG } }], { usageMetadata: { promptTokenCount, candidatesTokenCount } }),
    );
  const answers = [await readCounts(3, 5), await readCounts(3, 0), await readCounts(0, 0)];
  t.deepEqual(
    answers.map(({ usage }) => usage && [usage.promptTokens, usage.completionTokens]),
    [[3, 5], [3, null], null],
  );
  const join = (...values: typeof answers) =>
    joinImageAnswers(values.map((value) => ({ status: 'fulfilled', value })));
  t.like(join(answers[0]!, answers[1]!).usage, { promptTokens: 6, completionTokens: null });
  t.is(join(answers[0]!, answers[2]!).usage, null);
});

test('those that were made are the answer, with why others were not; where none was, a refusal is told before a failure', async (t) => {
  const { images } = await read(draw([{ inlineData: { data: PNG } }]));
  const made = { status: 'fulfilled', value: { images, calls: 1, usage: null } } as const;
  const fail = (reason: unknown) => ({ status: 'rejected', reason }) as const;
  const [refused, broken] = [new UpstreamError('rejected', 'no'), new UpstreamError('unavailable', 'down')];
  const some = joinImageAnswers([fail(broken), made, fail(refused), made]);
  t.is(some.images.length, 2);
  t.is(some.calls, 2, 'those that were answered');
  t.is(some.missing, refused);
  t.is(joinImageAnswers([made]).missing, undefined);
  t.is(
    t.throws(() => joinImageAnswers([fail(broken), fail(refused)])),
    refused,
  );
  const late = new UpstreamError('timeout', 'late', { mayGoOn: true });
  t.is(
    t.throws(() => joinImageAnswers([fail(broken), fail(late)])),
    late,
    'one of them may still be drawn',
  );
  const usage = { ...noUpstreamUsage, promptTokens: 3, completionTokens: 5 };
  const none = { status: 'fulfilled', value: { images: [], missing: refused, calls: 1, usage } } as const;
  t.like(joinImageAnswers([none, fail(broken), none]), {
    images: [],
    missing: refused,
    usage: { promptTokens: 6, completionTokens: 10 },
  });
  const ours = new TypeError('a fault of ours');
  t.is(
    t.throws(() => joinImageAnswers([made, fail(refused), fail(ours)])),
    ours,
  );
});
