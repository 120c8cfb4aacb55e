import test from 'ava';
import OpenAI, { toFile } from 'openai';

import { startVendorSimulator, type VendorSimulator } from '../../../scripts/vendor-simulator/simulator.ts';
import { makePng, readPngSize } from '../../../scripts/vendor-simulator/tiny-png.ts';
import { sniffImageType } from '../../../shared/contract/image-type.ts';

let simulator: VendorSimulator;
let client: OpenAI;

test.before(async () => {
  simulator = await startVendorSimulator();
  client = new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: 'sk-sim', maxRetries: 0 });
});
test.after.always(() => simulator.close());

const png = makePng(8, 8, [1, 2, 3]);
const upload = (bytes: Buffer = png): Promise<File> => toFile(bytes, 'a.png', { type: 'image/png' });
const dataUri = `data:image/png;base64,${png.toString('base64')}`;
const baseRequest = { model: 'gpt-image-sim', prompt: 'a grey cat' };

interface ImageResponse {
  readonly data: { b64_json: string }[];
  readonly error?: { message: string };
}

async function post(path: string, body: object): Promise<{ status: number; body: ImageResponse }> {
  const response = await fetch(simulator.url + path, { method: 'POST', body: JSON.stringify(body) });
  return { status: response.status, body: (await response.json()) as ImageResponse };
}

async function outcomeOf(path: string, body: object): Promise<string> {
  const { status, body: answer } = await post(path, body);
  return `${status} ${answer.error?.message}`;
}

const generate = (more: object): Promise<string> =>
  outcomeOf('/v1/images/generations', { ...baseRequest, ...more });
const edit = (more: object): Promise<string> => outcomeOf('/v1/images/edits', { ...baseRequest, ...more });

test('the official SDK edits one image, several, and one with a mask, and receives the token counts', async (t) => {
  for (const image of [await upload(), [await upload()], [await upload(), await upload()]]) {
    const { data, usage } = await client.images.edit({ ...baseRequest, image, n: 2, quality: 'low' });
    t.is(data?.length, 2);
    t.is(sniffImageType(Buffer.from(data?.[0]?.b64_json ?? '', 'base64')), 'image/png');
    const files = Array.isArray(image) ? image.length : 1;
    t.is(usage?.input_tokens, 3 + 272 * files);
    t.is(usage?.output_tokens, 2 * 272);
  }
  await t.notThrowsAsync(client.images.edit({ ...baseRequest, image: await upload(), mask: await upload() }));
});

test('the official SDK streams previews and the final image, from a prompt and from edits', async (t) => {
  const made = await client.images.generate({ ...baseRequest, stream: true, partial_images: 2 });
  const types: string[] = [];
  for await (const event of made) {
    types.push(event.type);
    if (event.type === 'image_generation.completed') t.is(event.usage.output_tokens, 1056);
  }
  const partial = 'image_generation.partial_image';
  t.deepEqual(types, [partial, partial, 'image_generation.completed']);
  const image = [await upload()];
  const edited: string[] = [];
  for await (const { type } of await client.images.edit({
    ...baseRequest,
    image,
    stream: true,
    partial_images: 1,
  })) {
    edited.push(type);
  }
  t.deepEqual(edited, ['image_edit.partial_image', 'image_edit.completed']);
});

test('image requests that OpenAI rejects are rejected, by model family', async (t) => {
  t.is(await generate({ response_format: 'b64_json' }), "400 Unknown parameter: 'response_format'.");
  t.is(await generate({ style: 'vivid' }), "400 Unknown parameter: 'style'.");
  t.is(await generate({ negative_prompt: 'dogs' }), "400 Unknown parameter: 'negative_prompt'.");
  t.is(await generate({ image: dataUri }), "400 Unknown parameter: 'image'.");
  t.is(await generate({ prompt: '' }), "400 Missing required parameter: 'prompt'.");
  t.regex(await generate({ n: 11 }), /^400 'n'/);
  t.regex(await generate({ partial_images: 4 }), /^400 'partial_images'/);
  t.regex(await generate({ background: 'transparent', output_format: 'jpeg' }), /^400 Transparent/);
  t.regex(await generate({ output_compression: 50 }), /^400 Compression/);
  t.regex(await generate({ model: 'dall-e-3', n: 2 }), /^400 You must provide n=1/);
  t.is(await generate({ model: 'dall-e-3', background: 'auto' }), "400 Unknown parameter: 'background'.");
  t.regex(await generate({ stream: true, n: 2 }), /^400 Streaming/);
  t.is(await generate({ output_format: 'webp', output_compression: 50, moderation: 'low' }), '200 undefined');
});

test('edits that OpenAI rejects are rejected', async (t) => {
  const images = [{ image_url: dataUri }];
  t.is(await edit({ images }), '200 undefined');
  t.is(await edit({}), "400 Missing required parameter: 'image'.");
  t.is(await edit({ images, moderation: 'low' }), "400 Unknown parameter: 'moderation'.");
  const fidelity = { images, model: 'gpt-image-2', input_fidelity: 'high' };
  t.is(await edit(fidelity), "400 Unknown parameter: 'input_fidelity'.");
  t.regex(
    await edit({ images: [{ image_url: 'data:image/png;base64,aGVsbG8=' }] }),
    /^400 Invalid image file/,
  );
  t.regex(await edit({ images, mask: { image_url: 'data:image/png;base64,aGVsbG8=' } }), /^400 Invalid mask/);
  const other = makePng(9, 8, [0, 0, 0]).toString('base64');
  const mask = { image_url: `data:image/png;base64,${other}` };
  t.regex(await edit({ images, mask }), /^400 Invalid mask image: its size does not match/);
  t.regex(await edit({ images: [...images, ...images], model: 'dall-e-2' }), /^400 Too many images/);
  t.regex(await edit({ images, model: 'dall-e-3' }), /^400 This model does not edit/);
  const form = new FormData();
  for (const [name, value] of Object.entries(baseRequest)) form.set(name, value);
  form.append('image', await upload());
  form.append('image', await upload());
  const twice = await fetch(`${simulator.url}/v1/images/edits`, { method: 'POST', body: form });
  t.regex(JSON.stringify(await twice.json()), /Duplicate parameter: 'image'/);
  const headers = { 'content-type': 'multipart/form-data; boundary=x' };
  const broken = await fetch(`${simulator.url}/v1/images/edits`, { method: 'POST', body: '--y', headers });
  t.is(broken.status, 400);
});

test('images of every format have the requested properties, and image fault words have their effect', async (t) => {
  const read = async (model: string, more: object = {}): Promise<Buffer> => {
    const { body } = await post('/v1/images/generations', { ...baseRequest, model, ...more });
    return Buffer.from(body.data[0]!.b64_json, 'base64');
  };
  for (const format of ['png', 'jpeg', 'webp'] as const) {
    t.is(sniffImageType(await read('gpt-image-sim', { output_format: format })), `image/${format}`);
  }
  t.is((await read('gpt-image-sim+textimage')).toString(), 'This is no image.');
  t.is(sniffImageType(await read('gpt-image-sim+brokenimage')), null);
  const bomb = await read('gpt-image-sim+bombimage');
  t.deepEqual(readPngSize(bomb), { width: 20_000, height: 20_000 });
  t.true(bomb.length < 100_000);
});

test('Gemini edits the given images, and rejects more than 20 MB of them', async (t) => {
  const draw = async (parts: object[]) => {
    const response = await fetch(`${simulator.url}/v1beta/models/gemini-sim:generateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': 'k' },
      body: JSON.stringify({ contents: [{ parts }], generationConfig: { responseModalities: ['IMAGE'] } }),
    });
    return JSON.stringify(await response.json());
  };
  const text = { text: 'a grey cat' };
  const input = { inlineData: { mimeType: 'image/png', data: png.toString('base64') } };
  const drawn = await draw([text]);
  const edited = await draw([input, text]);
  t.regex(edited, /"inlineData":\{"mimeType":"image\/png"/);
  t.not(edited, drawn);
  const large = Buffer.concat([png, Buffer.alloc(16_000_000)]).toString('base64');
  const refused = await draw([{ inlineData: { mimeType: 'image/png', data: large } }, text]);
  t.regex(refused, /Request payload size exceeds the limit: 20971520 bytes\./);
});
