import test from 'ava';
import sharp, { type Color } from 'sharp';
import { FairBudget } from '../../../shared/fairness/fair-budget.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { noImageOptions, type ImageJob } from '../../../shared/work/queue/job-kinds.ts';
import { loadInputImages } from '../../../workers/media/load-input-images.ts';
import {
  createImageReencoder,
  type ReencodeImage,
  type ReencodeOptions,
} from '../../../workers/media/reencode-image.ts';
import type { SafeFetchClient } from '../../../workers/outbound/safe-fetch-client.ts';
import { makeBlackPng } from '../../support/make-black-png.ts';
import { useDecoders } from '../../support/use-decoders.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Every incoming or outgoing image is re-encoded from its pixels, within limits. */

const reencodeImage = createImageReencoder(useDecoders(test));
const signal = new AbortController().signal;

const reencode = (bytes: Buffer, more: Partial<ReencodeOptions> = {}) =>
  reencodeImage(bytes, {
    accountId: 'a',
    origin: 'caller',
    signal,
    waitMs: 60_000,
    format: null,
    quality: null,
    ...more,
  });

const draw = (width = 40, height = 20, background: Color = 'red') =>
  sharp({ create: { width, height, channels: 4, background } });

async function reencodeValid(bytes: Buffer, more: Partial<ReencodeOptions> = {}) {
  const reencoded = await reencode(bytes, more);
  if ('problem' in reencoded) throw new Error(reencoded.problem);
  return reencoded;
}

test('location, camera, comments, profile and trailing data are removed, and the image is upright', async (t) => {
  const exif = { IFD0: { ImageDescription: 'at home' }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } };
  for (const format of ['jpeg', 'png', 'webp'] as const) {
    const file = await draw()
      .withExif(exif)
      .withMetadata({ orientation: 6, icc: 'p3' })
      .toFormat(format)
      .toBuffer();
    const before = await sharp(file).metadata();
    t.truthy(before.exif);
    const reencoded = await reencodeValid(Buffer.concat([file, Buffer.from('a secret after the end')]));
    const after = await sharp(reencoded.bytes).metadata();
    t.is(reencoded.contentType, `image/${format}`);
    t.deepEqual(
      [after.exif, after.icc, after.xmp, after.orientation],
      [undefined, undefined, undefined, undefined],
    );
    t.deepEqual([reencoded.width, reencoded.height], [20, 40], 'rotated as EXIF specifies');
    t.false(reencoded.bytes.includes('at home') || reencoded.bytes.includes('secret'));
  }
});

test('a PNG keeps all of its pixels and its transparency', async (t) => {
  const file = await draw(3, 2, { r: 1, g: 2, b: 3, alpha: 0.5 }).png().toBuffer();
  const reencoded = await reencodeValid(file);
  t.true(reencoded.hasAlpha);
  const pixels = (bytes: Buffer): Promise<Buffer> => sharp(bytes).raw().toBuffer();
  t.deepEqual(await pixels(reencoded.bytes), await pixels(file));
});

test('only the first frame of an animation is kept, as a PNG if it is a GIF', async (t) => {
  const raw = { width: 8, height: 24, channels: 3, pageHeight: 8 } as const;
  const gif = await sharp(Buffer.alloc(8 * 24 * 3, 77), { raw })
    .gif()
    .toBuffer();
  const reencoded = await reencodeValid(gif);
  t.is(reencoded.contentType, 'image/png');
  t.deepEqual([reencoded.width, reencoded.height], [8, 8]);
});

test('an image is written in another format if requested, and transparent areas do not become black', async (t) => {
  const file = await draw(4, 4, { r: 0, g: 0, b: 0, alpha: 0 }).png().toBuffer();
  const jpeg = await reencodeValid(file, { format: 'jpeg' });
  t.is(jpeg.contentType, 'image/jpeg');
  t.is((await sharp(jpeg.bytes).raw().toBuffer())[0], 255);
  const [fine, rough] = [
    await reencodeValid(file, { format: 'webp', quality: 100 }),
    await reencodeValid(file, { format: 'webp', quality: 0 }),
  ];
  t.is(fine.contentType, 'image/webp');
  t.true(rough.bytes.length <= fine.bytes.length);
});

for (const [name, bytes, problem] of [
  ['a decompression bomb', makeBlackPng(10_000, 10_000, 100), 'has more than 50 million pixels'],
  ['a truncated file', makeBlackPng(2_000, 2_000, 10), 'cannot be decoded: it is damaged or cut off'],
  ['an SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'is not a PNG, JPEG, WebP or GIF'],
  [
    'a PNG signature without an image',
    Buffer.from('89504e470d0a1a0a', 'hex'),
    'cannot be decoded: it is damaged or cut off',
  ],
] as const) {
  test(`${name} is rejected`, async (t) => {
    t.deepEqual(await reencode(bytes), { problem });
  });
}

const noFetches: SafeFetchClient = { fetchBytes: () => Promise.reject(new Error('nothing is fetched')) };
const toUri = (bytes: Buffer): string => `data:image/png;base64,${bytes.toString('base64')}`;

function load(
  {
    inputs,
    mask = null,
    deadlineInMs = 60_000,
  }: { inputs: readonly string[]; mask?: string | null; deadlineInMs?: number },
  {
    fetchClient = noFetches,
    memory = new FairBudget({ capacity: 512_000_000 }),
    reencoder = reencodeImage,
  }: { fetchClient?: SafeFetchClient; memory?: FairBudget; reencoder?: ReencodeImage } = {},
) {
  const request = { accountId: 'a', deadlineAtMs: Date.now() + deadlineInMs };
  const inputLocs = inputs.map((_, i) => ['body', 'image', i]);
  const job = { request, inputs, inputLocs, mask, options: noImageOptions } as unknown as ImageJob;
  return loadInputImages({ fetchClient, memory, reencodeImage: reencoder }, job, signal);
}

test('input images hold memory until their request releases them, and no more than their size', async (t) => {
  const memory = new FairBudget({ capacity: 512_000_000 });
  const uri = toUri(await draw().png().toBuffer());
  const loaded = await load({ inputs: [uri, uri], mask: uri }, { memory });
  t.is(loaded.inputs.length, 2);
  t.is(loaded.mask?.width, 40);
  t.true(memory.held > 0 && memory.held < 10_000, String(memory.held));
  loaded.release();
  t.is(memory.held, 0);
});

test('if re-encoding a photograph makes it exceed the size limit, it is re-encoded to at most its original size', async (t) => {
  const noise = { type: 'gaussian' as const, mean: 128, sigma: 60 };
  const grain = sharp({ create: { width: 400, height: 400, channels: 3, background: 'grey', noise } });
  for (const format of ['jpeg', 'webp'] as const) {
    const photo = await grain.clone().toFormat(format, { quality: 80 }).toBuffer();
    const fine = await reencodeValid(photo);
    t.true(fine.bytes.length > 1.2 * photo.length, `${format}: ${photo.length}, ${fine.bytes.length}`);
    // Simulates the size that the result would have with as many pixels as a real photograph.
    const reencoder: ReencodeImage = async (bytes, options) =>
      options.quality === null
        ? { ...fine, bytes: Buffer.alloc(20_000_001) }
        : await reencodeImage(bytes, options);
    const { inputs } = await load({ inputs: [toUri(photo)] }, { reencoder });
    t.true(inputs[0]!.bytes.length <= photo.length);
  }
  const endless: ReencodeImage = async () => ({
    ...(await reencodeValid(await draw().png().toBuffer())),
    bytes: Buffer.alloc(20_000_001),
  });
  const png = toUri(await draw().png().toBuffer());
  await t.throwsAsync(load({ inputs: [png] }, { reencoder: endless }), {
    message: /larger than 20 MB when encoded again/,
  });
});

test('a request waits for memory until its deadline, and a failed request holds none', async (t) => {
  const memory = new FairBudget({ capacity: 1_000 });
  const held = memory.tryAcquire('b', 1_000);
  const uri = toUri(await draw().png().toBuffer());
  const late = await t.throwsAsync(load({ inputs: [uri], deadlineInMs: 1 }, { memory }), {
    instanceOf: AppError,
  });
  t.is(late?.code, 'deadline_exceeded');
  const waiting = load({ inputs: [uri] }, { memory });
  await waitFor('the load to wait', () => memory.waiting === 1);
  held?.release();
  (await waiting).release();
  await t.throwsAsync(load({ inputs: [toUri(Buffer.from('x'))] }, { memory }));
  t.is(memory.held, 0);
});

test('an error in an image names the request field of the image', async (t) => {
  const good = toUri(await draw().png().toBuffer());
  const fail = (): never => {
    throw new AppError('unsafe_url', {
      message: 'messages: The URL is not fetched.',
      issues: [{ loc: ['body', 'messages'], msg: 'The URL is not fetched.', type: 'value_error' }],
    });
  };
  const fetchClient = { fetchBytes: () => Promise.resolve().then(fail) };
  const linked = await t.throwsAsync(load({ inputs: [good, 'https://a.test/x'] }, { fetchClient }), {
    instanceOf: AppError,
  });
  t.is(linked?.code, 'unsafe_url');
  t.is(linked?.message, 'image.1: The URL is not fetched.');
  const bomb = await t.throwsAsync(load({ inputs: [good, good, toUri(makeBlackPng(10_000, 10_000, 100))] }), {
    instanceOf: AppError,
  });
  t.deepEqual(bomb?.issues[0]?.loc, ['body', 'image', 2]);
  const broken = await t.throwsAsync(load({ inputs: [`${good}!`] }), { instanceOf: AppError });
  t.is(broken?.param, 'image.0');
});

test('a mask must be a PNG with transparency, as large as the first image, under 4 MB', async (t) => {
  const input = toUri(await draw().png().toBuffer());
  const opaque = await sharp({ create: { width: 40, height: 20, channels: 3, background: 'red' } })
    .png()
    .toBuffer();
  const masks: readonly (readonly [Buffer, RegExp])[] = [
    [await draw().webp().toBuffer(), /must be a PNG/],
    [opaque, /has no alpha channel/],
    [await draw(20, 40).png().toBuffer(), /the mask is 20x40, the image is 40x20/],
    [Buffer.concat([await draw().png().toBuffer(), Buffer.alloc(4_000_000)]), /smaller than 4 MB/],
  ];
  for (const [mask, expected] of masks) {
    const error = await t.throwsAsync(load({ inputs: [input], mask: toUri(mask) }), { instanceOf: AppError });
    t.is(error?.param, 'mask');
    t.regex(error?.message ?? '', expected);
  }
});
