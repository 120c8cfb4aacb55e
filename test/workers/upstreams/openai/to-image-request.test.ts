import test from 'ava';

import type { ImageOptions } from '../../../../shared/work/queue/job-kinds.ts';
import { toImageEditRequest, toImageRequest } from '../../../../workers/upstreams/openai/to-image-request.ts';
import type { ImageCall, InputImage, UpstreamTarget } from '../../../../workers/upstreams/upstream.ts';
import { createImageCall, createTarget } from '../../../support/upstream-target.ts';

function target(model: string, ...drops: string[]): UpstreamTarget {
  return createTarget(model, { drops: new Set(drops) });
}

const call = createImageCall({ n: 2 });
const options: ImageOptions = {
  background: 'transparent',
  moderation: 'low',
  outputFormat: 'webp',
  outputCompression: 40,
  inputFidelity: 'high',
};

test('base64 is requested from every image model except the GPT family, which rejects the field', (t) => {
  const plain = { prompt: 'a cat', n: 2, size: '1024x1024' };
  for (const model of [
    'gpt-image-1',
    'gpt-image-2-2026-04-21',
    'openai/gpt-image-1-mini',
    'chatgpt-image-latest',
  ]) {
    t.deepEqual(toImageRequest(target(model), call), { model, ...plain });
  }
  for (const model of ['dall-e-2', 'flux', 'not-gpt-image-1']) {
    t.deepEqual(toImageRequest(target(model), call), { model, ...plain, response_format: 'b64_json' });
  }
  t.like(toImageRequest(target('dall-e-3'), call), { n: 1 });
});

test('style is a field only for DALL·E 3 and otherwise part of the prompt; the negative prompt is always part of the prompt', (t) => {
  const styled = { ...call, style: 'vivid', negativePrompt: 'dogs', quality: 'hd', user: 'u' };
  const known = toImageRequest(target('dall-e-3'), styled);
  t.like(known, { style: 'vivid', prompt: 'a cat\n\nAvoid: dogs.', quality: 'hd', user: 'u' });
  t.is(known['negative_prompt'], undefined);
  for (const [model, style] of [
    ['gpt-image-1', 'vivid'],
    ['dall-e-3', 'gothic'],
  ] as const) {
    const request = toImageRequest(target(model), { ...styled, style });
    t.is(request['style'], undefined);
    t.is(request['prompt'], `a cat\n\nStyle: ${style}.\n\nAvoid: dogs.`);
  }
});

test('options that the route does not drop are sent to the GPT family and to models of other vendors, but never to DALL·E', (t) => {
  const sent = {
    background: 'transparent',
    moderation: 'low',
    output_format: 'webp',
    output_compression: 40,
  };
  for (const model of ['gpt-image-1', 'flux']) {
    t.like(toImageRequest(target(model), { ...call, options }), sent);
  }
  for (const model of ['dall-e-2', 'dall-e-3']) {
    const request = toImageRequest(target(model), { ...call, options });
    t.deepEqual(Object.keys(request).sort(), ['model', 'n', 'prompt', 'response_format', 'size']);
  }
  const dropping = target('flux', 'background', 'moderation', 'output_compression');
  const reduced = toImageRequest(dropping, { ...call, options });
  t.deepEqual(
    Object.keys(sent).filter((field) => field in reduced),
    ['output_format'],
  );
  const png = { ...options, outputFormat: 'png' } as const;
  const lossless = toImageRequest(target('gpt-image-1'), { ...call, options: png });
  t.is(lossless['output_compression'], undefined, 'PNG has no quality');
});

test('a stream is requested if previews are requested and the model can stream', (t) => {
  const streamed = { stream: true, partial_images: 2 };
  t.like(toImageRequest(target('gpt-image-1'), { ...call, partialImages: 2 }), streamed);
  for (const [model, partialImages, drop] of [
    ['gpt-image-1', null, ''],
    ['gpt-image-1', 0, ''],
    ['gpt-image-1', 2, 'stream'],
    ['dall-e-3', 2, ''],
    ['flux', 2, ''],
  ] as const) {
    const request = toImageRequest(target(model, drop), { ...call, partialImages });
    t.is(request['stream'], undefined, model);
  }
});

const input = (text: string, contentType: InputImage['contentType'] = 'image/png'): InputImage => ({
  bytes: Buffer.from(text),
  contentType,
  width: 1,
  height: 1,
});

async function readForm(model: string, more: Partial<ImageCall>, ...drops: string[]) {
  const body = toImageEditRequest(target(model, ...drops), { ...call, ...more });
  if (body.length !== Buffer.concat(body.pieces).length) throw new Error('wrong length');
  const headers = { 'content-type': body.contentType };
  const form = await new Response(Buffer.concat(body.pieces), { headers }).formData();
  const files: string[] = [];
  const fields: Record<string, string> = {};
  for (const [name, value] of form.entries()) {
    if (typeof value === 'string') fields[name] = value;
    else files.push(`${name} ${value.name} ${value.type} ${await value.text()}`);
  }
  return { fields, files };
}

test('an edit is a form: one file is `image`, several are `image[]`, and the mask is separate', async (t) => {
  const inputs = [input('first\r\n--x'), input('second', 'image/jpeg')];
  const several = await readForm('gpt-image-1', { inputs, mask: input('hole') });
  t.deepEqual(several.files, [
    'image[] image-1.png image/png first\r\n--x',
    'image[] image-2.jpg image/jpeg second',
    'mask mask.png image/png hole',
  ]);
  t.deepEqual(several.fields, { model: 'gpt-image-1', prompt: 'a cat', n: '2', size: '1024x1024' });
  const one = await readForm('gpt-image-1', { inputs: [inputs[0]!], mask: input('hole') }, 'mask', 'n');
  t.deepEqual(one.files, ['image image-1.png image/png first\r\n--x']);
  t.is(one.fields['n'], undefined);
  t.is((await readForm('dall-e-2', { inputs })).fields['response_format'], 'b64_json');
});

test('an input of several megabytes is sent unchanged', async (t) => {
  const bytes = Buffer.alloc(3_000_001, 'pixels');
  const { files } = await readForm('gpt-image-1', { inputs: [{ ...input(''), bytes }] });
  t.is(files[0], `image image-1.png image/png ${bytes.toString()}`);
});

test('an edit includes the input fidelity if the model supports it, and never the moderation level', async (t) => {
  const edit = { inputs: [input('a')], options, partialImages: 1 };
  t.deepEqual((await readForm('gpt-image-1', edit)).fields, {
    model: 'gpt-image-1',
    prompt: 'a cat',
    n: '2',
    size: '1024x1024',
    background: 'transparent',
    output_format: 'webp',
    output_compression: '40',
    stream: 'true',
    partial_images: '1',
    input_fidelity: 'high',
  });
  for (const [model, fidelity] of [
    ['gpt-image-2', undefined],
    ['openai/gpt-image-1-mini', undefined],
    ['flux-kontext', 'high'],
    ['dall-e-2', undefined],
  ] as const) {
    t.is((await readForm(model, edit)).fields['input_fidelity'], fidelity, model);
  }
});
