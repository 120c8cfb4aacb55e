import test from 'ava';
import type { AdmittedRequest } from '../../../../shared/money/admitted-request.ts';
import { createImageJob, prepareImages } from '../../../../shared/preparing/images/prepare-images.ts';
import type { PrepareOptions } from '../../../../shared/preparing/preparation.ts';
import { validateBody } from '../../../../shared/preparing/validate-body.ts';
import { noImageOptions } from '../../../../shared/work/queue/job-kinds.ts';
import { createModelCatalog } from '../../../support/model-catalog.ts';

const catalog = createModelCatalog(`
upstreams:
  vendor: { kind: openai, baseUrl: "http://127.0.0.1:1/v1" }
models:
  - { id: picture, type: image, context: 1000, size: [512x512, 1024x1024], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor }] }
  - { id: editor, type: image, context: 1000, input_modalities: [text, image], pricing: { type: image, cost_per_image: 1.5 }, routes: [{ upstream: vendor, model: gpt-image-1 }] }
`);
const { signal } = new AbortController();
const link = 'https://pictures.test/a.png';

test('the job of an image request has all fields of the checked request', async (t) => {
  const body = validateBody('createImage', { model: 'picture', prompt: 'a cat', n: 2, size: '512x512' });
  const { model, estimate, job } = await prepareImages({ catalog }, 'createImage', body, {
    accountId: 'account',
    signal,
  });
  t.is(model.id, 'picture');
  t.is(estimate.model, model);
  t.is(estimate.fixedNano, 3_000_000_000n);
  const request = { requestId: 'r' } as AdmittedRequest;
  t.deepEqual(createImageJob(job, request, 'channel'), {
    v: 1,
    kind: 'image',
    request,
    replyChannel: 'channel',
    operation: 'createImage',
    prompt: 'a cat',
    negativePrompt: null,
    style: null,
    n: 2,
    size: '512x512',
    isSizeAsked: true,
    quality: null,
    responseFormat: 'b64_json',
    inputs: [],
    inputLocs: [],
    mask: null,
    options: noImageOptions,
    partialImages: null,
  });
});

test('an edit keeps its input image, and is checked as an edit', async (t) => {
  const checks: string[] = [];
  const options: PrepareOptions = {
    accountId: 'account',
    signal,
    checkEarly: async ({ id }) => {
      checks.push(id);
    },
  };
  const body = validateBody('editImage', { model: 'editor', prompt: 'a cat', image: link });
  const { job } = await prepareImages({ catalog }, 'editImage', body, options);
  t.deepEqual(job.inputs, [link]);
  t.deepEqual(checks, ['editor']);
  const others = { ...body, model: 'picture' };
  await t.throwsAsync(prepareImages({ catalog }, 'editImage', others, options), {
    code: 'validation_failed',
    message: /^model: picture generates images from text only/,
  });
  t.deepEqual(checks, ['editor']);
});
