import test, { type ExecutionContext } from 'ava';
import OpenAI, { toFile } from 'openai';
import sharp from 'sharp';
import { tinyPng } from '../../shared/contract/image-stream.ts';
import { parseRub } from '../../shared/encoding/money.ts';
import { findRow, readAmountCharged, waitForNoReservation } from '../support/observe.ts';
import { startScriptedVendor, type Script, type ScriptedVendor } from '../support/scripted-vendor.ts';
import { parseSse, readSse, withoutComments } from '../support/sse-events.ts';
import { waitUntilCancelled } from '../support/wait-until-cancelled.ts';
import { startStack, type TestAccount, type TestStack } from '../support/stack.ts';

/**
 * Image edits, input images, forms and image streams through HTTP, with the official client where it supports them.
 */

let vendor: ScriptedVendor;
let stack: TestStack;

const usage = { input_tokens: 20, output_tokens: 300, total_tokens: 320 };
const event = (kind: string, more: object = {}): string =>
  JSON.stringify({ type: `image_generation.${kind}`, b64_json: tinyPng, ...more });

let halfCalls = 0;

/** Lets the slow model finish its image. */
let finishSlowly = (): void => undefined;

async function* streamSlowly(): AsyncGenerator<string> {
  const finished = new Promise<void>((resolve) => (finishSlowly = resolve));
  yield event('partial_image', { partial_image_index: 0 });
  await finished;
  yield event('completed', { usage });
}

/**
 * Vendor responses by model: a stream of two previews and an image, a stream that breaks off after a preview, a slow
 * stream, and responses without a stream.
 */
const scripts: Readonly<Record<string, () => ReturnType<Script>>> = {
  'gpt-image-stream': () => [
    event('partial_image', { partial_image_index: 0 }),
    event('partial_image', { partial_image_index: 1 }),
    event('completed', { usage }),
  ],
  'gpt-image-broken': () => [
    event('partial_image', { partial_image_index: 0 }),
    JSON.stringify({
      type: 'error',
      error: {
        type: 'image_generation_user_error',
        code: 'content_policy_violation',
        message: 'Not this one.',
      },
    }),
  ],
  'gpt-image-slow': streamSlowly,
  whole: () => ({ created: 1, data: [{ b64_json: tinyPng }], usage }),
  half: () => {
    halfCalls += 1;
    return { created: 1, data: [{ url: 'https://images.example/1.png' }, { b64_json: tinyPng }], usage };
  },
  'not-an-image': () => ({
    created: 1,
    data: [{ b64_json: Buffer.from('89504e470d0a1a0a00', 'hex').toString('base64') }],
  }),
};

const byTokens = (id: string, model = id): string =>
  `  - { id: ${id}, type: image, context: 8192, max_output_tokens: 1000, pricing: { prompt: 1000, completion: 10000 }, routes: [{ upstream: vendor, model: ${model} }] }`;

test.before(async () => {
  vendor = await startScriptedVendor((body) => scripts[String(body['model'])]!());
  stack = await startStack({
    catalog: `
upstreams:
  builtin: { kind: builtin }
  vendor: { kind: openai, baseUrl: "${vendor.url}/v1" }
models:
  - { id: draw, type: image, context: 8192, size: [256x256], pricing: { type: image, cost_per_image: 0.05 }, routes: [{ upstream: builtin, model: demo-svg-image }] }
  - { id: edit, type: image, context: 8192, size: [256x256], max_file_count: 4, input_modalities: [text, image], pricing: { type: image, cost_per_image: 0.07 }, routes: [{ upstream: builtin, model: demo-image-edit }] }
${byTokens('streamed', 'gpt-image-stream')}
${byTokens('broken', 'gpt-image-broken')}
${byTokens('slow', 'gpt-image-slow')}
${byTokens('whole')}
${byTokens('half')}
${byTokens('not-an-image')}
`,
  });
});

test.after.always(async () => {
  await stack?.close();
  await vendor?.close();
});

const red = sharp({ create: { width: 300, height: 200, channels: 3, background: 'red' } });
const exif = { IFD3: { GPSLatitude: '51/1 30/1 0/1' } };

/** A photo as taken by a phone: its metadata contains the location. */
const photo = (): Promise<Buffer> => red.clone().withExif(exif).jpeg().toBuffer();

async function createClient(): Promise<{ client: OpenAI; account: TestAccount }> {
  const account = await stack.createAccount();
  return { client: new OpenAI({ apiKey: account.apiKey, baseURL: `${stack.url}/v1` }), account };
}

async function readImage(t: ExecutionContext, b64: string | null | undefined) {
  const bytes = Buffer.from(b64 ?? '', 'base64');
  const head = await sharp(bytes).metadata();
  t.is(head.exif, undefined);
  const { channels } = await sharp(bytes).stats();
  const means = channels.slice(0, 3).map(({ mean }) => Math.round(mean));
  return { means, format: head.format, width: head.width };
}

test('the official client edits one file, several files, and one with a mask', async (t) => {
  const { client, account } = await createClient();
  const bytes = await photo();
  const common = { model: 'edit', prompt: 'grayscale', size: '256x256' as const };
  const upload = (): ReturnType<typeof toFile> => toFile(bytes, 'photo.jpg');
  const one = await client.images.edit({ ...common, image: await upload() });
  const { means, width } = await readImage(t, one.data?.[0]?.b64_json);
  t.is(width, 256);
  t.is(new Set(means).size, 1, 'the image is grey');
  const several = await client.images.edit({ ...common, image: [await upload(), await upload()], n: 2 });
  t.is(several.data?.length, 2);
  const mask = await sharp({ create: { width: 300, height: 200, channels: 4, background: '#0000' } })
    .png()
    .toBuffer();
  const masked = await client.images.edit({
    ...common,
    image: await upload(),
    mask: await toFile(mask, 'mask.png', { type: 'image/png' }),
    output_format: 'webp',
    stream: false,
  });
  t.is((await readImage(t, masked.data?.[0]?.b64_json)).format, 'webp');
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 4n * 70_000_000n);
});

test('links to edited images work, and generations accept input images', async (t) => {
  const account = await stack.createAccount();
  const image = (await photo()).toString('base64');
  const body = { model: 'edit', prompt: 'grayscale', image_url: image };
  const edit = await stack.post('/v1/images/edits', account.apiKey, { ...body, response_format: 'url' });
  const { data } = (await edit.json()) as { data: { url: string }[] };
  t.is((await fetch(data[0]!.url)).headers.get('content-type'), 'image/png');
  const generation = await stack.post('/v1/images/generations', account.apiKey, body);
  const generated = (await generation.json()) as { data: { b64_json: string }[] };
  t.is(new Set((await readImage(t, generated.data[0]!.b64_json)).means).size, 1);
  const { model, images, success } = await findRow(stack, generation.headers.get('x-request-id')!);
  t.deepEqual([model, images, success], ['edit', 1, true]);
});

async function sendForm(
  { apiKey }: TestAccount,
  parts: readonly (readonly [string, string | Blob])[],
  { path = '/v1/images/edits', headers = {} } = {},
): Promise<Response> {
  const form = new FormData();
  for (const [name, value] of parts) form.append(name, value);
  return await fetch(`${stack.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, ...headers },
    body: form,
  });
}

test('with an Idempotency-Key, a form is the same request with its parts in any order and with any boundary, and is charged once', async (t) => {
  const account = await stack.createAccount();
  const headers = { 'idempotency-key': 'one edit' };
  // Large enough to be parsed while it arrives.
  const noise = await sharp(Buffer.alloc(256 * 256 * 3, 99), {
    raw: { width: 256, height: 256, channels: 3 },
  })
    .png({ compressionLevel: 0 })
    .toBuffer();
  const parts = [
    ['model', 'edit'],
    ['prompt', 'blur'],
    ['image[]', new Blob([noise])],
  ] as const;
  const first = await sendForm(account, parts, { headers });
  const text = await first.text();
  t.is(first.status, 200, text.slice(0, 300));
  const second = await sendForm(account, parts.toReversed(), { headers });
  t.is(second.headers.get('idempotent-replayed'), 'true');
  t.is(await second.text(), text);
  const other = await sendForm(account, [...parts, ['n', '2']], { headers });
  t.is(other.status, 409);
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 70_000_000n);
});

const uriOf = (bytes: Buffer): string => `data:image/png;base64,${bytes.toString('base64')}`;

test('an invalid field that only a worker can detect is a 422 that reports the field, and nothing is charged', async (t) => {
  const account = await stack.createAccount();
  const image = uriOf(await red.clone().png().toBuffer());
  const truncated = image.slice(0, image.length - 200);
  const broken = truncated.slice(
    0,
    truncated.length - ((truncated.length - 'data:image/png;base64,'.length) % 4),
  );
  const invalid: readonly (readonly [object, string, string])[] = [
    [{ image: [image, broken] }, 'image.1', 'validation_failed'],
    [{ image, mask: image }, 'mask', 'validation_failed'],
    [{ image_url: ['https://127.0.0.1/a.png'] }, 'image_url.0', 'unsafe_url'],
  ];
  for (const [fields, param, code] of invalid) {
    const body = { model: 'edit', prompt: 'blur', ...fields };
    const response = await stack.post('/v1/images/edits', account.apiKey, body);
    t.is(response.status, 422);
    const { error, detail } = (await response.json()) as { error: object; detail: { loc: unknown[] }[] };
    t.like(error, { param, code });
    t.is(detail[0]?.loc.slice(1).join('.'), param);
  }
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

test('a form is accepted only where the operation supports it, and a broken one is a 422', async (t) => {
  const account = await stack.createAccount();
  const generation = await sendForm(account, [['model', 'draw']], { path: '/v1/images/generations' });
  t.is(generation.status, 415);
  const truncatedForm = await fetch(`${stack.url}/v1/images/edits`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'multipart/form-data; boundary=x' },
    body: '--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nblu',
  });
  t.is(truncatedForm.status, 422);
  t.regex(await truncatedForm.text(), /not a complete multipart\/form-data form/);
});

test('an invalid image from a vendor is an upstream error and is not charged', async (t) => {
  const account = await stack.createAccount();
  const response = await stack.post('/v1/images/generations', account.apiKey, {
    model: 'not-an-image',
    prompt: 'a cat',
  });
  t.is(response.status, 502);
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

test('a valid image next to an invalid one is returned and charged, and the vendor is called once', async (t) => {
  const account = await stack.createAccount();
  const body = { model: 'half', prompt: 'two cats', n: 2 };
  const response = await stack.post('/v1/images/generations', account.apiKey, body);
  const { id, data } = (await response.json()) as { id: string; data: object[] };
  t.is(data.length, 1);
  t.is(halfCalls, 1);
  t.regex((await findRow(stack, id)).details ?? '', /^1 of 2 images were generated/);
  t.is(await readAmountCharged(stack, account.id, '100'), parseRub('3.02')!);
});

test('the official client reads a stream of previews, which ends with the image and its cost', async (t) => {
  const { client, account } = await createClient();
  const generation = await client.images.generate({
    model: 'draw',
    prompt: 'a fox',
    stream: true,
    partial_images: 2,
  });
  const events = [];
  for await (const one of generation) events.push(one);
  t.deepEqual(
    events.map((one) => [one.type, 'partial_image_index' in one ? one.partial_image_index : null]),
    [
      ['image_generation.partial_image', 0],
      ['image_generation.partial_image', 1],
      ['image_generation.completed', null],
    ],
  );
  for (const one of events) {
    t.is((await readImage(t, one.b64_json)).width, 256);
    t.like(one, { size: '256x256', quality: 'auto', background: 'auto', output_format: 'png' });
  }
  t.like(events.at(-1), { usage: { cost_request: 0.05, free_request: false } });
  // The request is settled before the end of the stream is sent.
  t.is(await readAmountCharged(stack, account.id, '100'), 50_000_000n);
  const image = await toFile(await photo(), 'a.jpg');
  const edited = await client.images.edit({ model: 'edit', prompt: 'blur', image, stream: true });
  const types = [];
  for await (const one of edited) types.push(one.type);
  t.deepEqual(types, ['image_edit.completed']);
});

test('a stream reports and bills the usage that its vendor counted', async (t) => {
  const account = await stack.createAccount();
  const streamImage = async (model: string) => {
    const body = { model, prompt: 'a cat', stream: true, partial_images: 2 };
    return await readSse(await stack.post('/v1/images/generations', account.apiKey, body));
  };
  const { events } = await streamImage('streamed');
  t.is(events.length, 3);
  const costs = { cost_request: 3.02, free_request: false };
  t.like(events.at(-1), { usage: { ...usage, ...costs } });
  // A model that does not stream gives a stream with only the image.
  const whole = await streamImage('whole');
  t.deepEqual(
    whole.events.map(({ type }) => type),
    ['image_generation.completed'],
  );
  t.like(whole.events[0], { usage: { ...usage, ...costs } });
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 2n * 3_020_000_000n);
});

test('a failure before the first event has its own status, and a later one ends the stream; neither is charged', async (t) => {
  const account = await stack.createAccount();
  const body = { prompt: 'a cat', stream: true, partial_images: 1 };
  const early = await stack.post('/v1/images/generations', account.apiKey, {
    ...body,
    model: 'not-an-image',
  });
  t.is(early.status, 502);
  const late = await stack.post('/v1/images/generations', account.apiKey, { ...body, model: 'broken' });
  t.is(late.status, 200);
  const { events } = await readSse(late);
  t.is(events[0]?.type, 'image_generation.partial_image');
  t.is(events.length, 2);
  t.is(events[1]?.error?.code, 'upstream_rejected');
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 0n);
});

test('a stream with an Idempotency-Key is stored and replayed unchanged', async (t) => {
  const account = await stack.createAccount();
  const body = { model: 'draw', prompt: 'a hen', stream: true, partial_images: 1 };
  const send = () =>
    stack.post('/v1/images/generations', account.apiKey, body, { 'idempotency-key': 'one stream' });
  const first = await (await send()).text();
  t.is(parseSse(first).events.length, 2);
  const again = await send();
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.is(withoutComments(await again.text()), withoutComments(first));
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 50_000_000n);
});

test('if the caller disconnects during a stream, it pays for the requested image', async (t) => {
  const account = await stack.createAccount();
  const client = new AbortController();
  const response = await fetch(`${stack.url}/v1/images/generations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${account.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'slow', prompt: 'a cat', stream: true, partial_images: 1 }),
    signal: client.signal,
  });
  const reader = response.body!.getReader();
  const first = Buffer.from((await reader.read()).value ?? []).toString();
  t.true(first.startsWith('event: image_generation.partial_image\ndata: {'));
  await waitUntilCancelled(t, stack, account, async () => client.abort());
  finishSlowly();
  await waitForNoReservation(stack, account.id);
  t.is(await readAmountCharged(stack, account.id, '100'), 3_020_000_000n);
  const row = await findRow(stack, response.headers.get('x-request-id')!);
  t.like(row, { success: false, responseCode: 499 });
});
