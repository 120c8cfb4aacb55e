import test from 'ava';
import sharp, { type Sharp } from 'sharp';
import { createImageChecker, type CheckedImage } from '../../../workers/media/check-image.ts';
import type { ImageProblem } from '../../../workers/media/image-limits.ts';
import { makeBlackPng } from '../../support/make-black-png.ts';
import { useDecoders } from '../../support/use-decoders.ts';

/** A new signal that is never aborted. Many checks with one signal would make Node warn of a leak. */
function never(): AbortSignal {
  return new AbortController().signal;
}

const checkImage = createImageChecker(useDecoders(test));

/** Returns the checked image, or the message of its problem. */
async function checkOrFault(bytes: Buffer): Promise<string | CheckedImage> {
  const checked: CheckedImage | ImageProblem = await checkImage(bytes, 'account', never());
  return 'problem' in checked ? checked.problem : checked;
}

const damaged = 'cannot be decoded: it is damaged or cut off';
const unknown = 'is not a PNG, JPEG, WebP or GIF';

/** Draws noise, which compresses badly, so that pixels fill most of the file. */
function drawNoise(width: number, height: number, pageHeight?: number): Sharp {
  const bytes = Buffer.alloc(width * height * 3);
  for (let i = 0, seed = 1; i < bytes.length; i++) {
    seed = (seed * 48_271) % 2_147_483_647;
    bytes[i] = seed >> 8;
  }
  const raw = { width, height, channels: 3 as const, ...(pageHeight === undefined ? {} : { pageHeight }) };
  return sharp(bytes, { raw });
}

/** Adds a gain map as phones do: a second, small JPEG after the first. The types of sharp do not include this yet. */
function withGainMap(jpeg: Buffer): Promise<Buffer> {
  return (sharp(jpeg) as Sharp & { withGainMap(): Sharp }).withGainMap().toBuffer();
}

/** Builds a GIF with the given number of frames, of one pixel each. */
function makeGif(frames: number): Buffer {
  const head = Buffer.from('47494638396101000100800000000000ffffff', 'hex');
  const frame = Buffer.from('2c00000000010001000002024c0100', 'hex');
  return Buffer.concat([head, ...Array.from({ length: frames }, () => frame), Buffer.from(';')]);
}

const images: Record<string, () => Promise<Buffer>> = {
  png: () => drawNoise(300, 200).png().toBuffer(),
  'png, interlaced': () => drawNoise(300, 200).png({ progressive: true }).toBuffer(),
  'png, palette': () => drawNoise(300, 200).png({ palette: true }).toBuffer(),
  jpeg: () => drawNoise(300, 200).jpeg().toBuffer(),
  'jpeg, progressive': () => drawNoise(300, 200).jpeg({ progressive: true }).toBuffer(),
  'jpeg, CMYK': () => drawNoise(300, 200).toColourspace('cmyk').jpeg().toBuffer(),
  'jpeg, with a gain map': async () => withGainMap(await drawNoise(300, 200).jpeg().toBuffer()),
  webp: () => drawNoise(300, 200).webp().toBuffer(),
  'webp, lossless': () => drawNoise(300, 200).webp({ lossless: true }).toBuffer(),
  gif: () => drawNoise(300, 200).gif().toBuffer(),
};

for (const [name, draw] of Object.entries(images)) {
  test(`a complete ${name} is accepted with its number of pixels`, async (t) => {
    const mediaType = `image/${name.split(',')[0]}`;
    t.deepEqual<unknown, unknown>(await checkOrFault(await draw()), { mediaType, pixels: 60_000 });
  });

  test(`a truncated ${name} is rejected`, async (t) => {
    const bytes = await draw();
    // The image is complete without the gain map after it, so the truncation ends before that map.
    const end = name.includes('gain map') ? bytes.lastIndexOf(Buffer.from('ffd8ff', 'hex')) : bytes.length;
    for (const fraction of [0.999, 0.99, 0.9, 0.5, 0.1]) {
      t.is(
        await checkOrFault(bytes.subarray(0, Math.floor(end * fraction) - 12)),
        damaged,
        `${fraction} of it`,
      );
    }
    t.is(await checkOrFault(bytes.subarray(0, 16)), damaged);
  });
}

test('the pixels of an animation are those of all frames; a truncated animation is rejected or has fewer frames', async (t) => {
  for (const format of ['gif', 'webp'] as const) {
    const bytes = await drawNoise(50, 400, 40)[format]().toBuffer();
    t.deepEqual<unknown, unknown>(await checkOrFault(bytes), {
      mediaType: `image/${format}`,
      pixels: 20_000,
    });
    const half = await checkOrFault(bytes.subarray(0, bytes.length / 2));
    // A truncated GIF is accepted, because viewers show its existing frames. A WebP is rejected: it states its length.
    t.deepEqual<unknown, unknown>(
      half,
      format === 'gif' ? { mediaType: 'image/gif', pixels: 10_000 } : damaged,
    );
    t.is(await checkOrFault(bytes.subarray(0, bytes.length / 20)), damaged, format);
  }
});

test('damage is found up to the last row of a tall image and in the last frame of an animation', async (t) => {
  const animation = drawNoise(50, 4_000, 400);
  const files: Record<string, Buffer> = {
    png: await drawNoise(20, 3_000).png().toBuffer(),
    gif: await drawNoise(300, 200).gif().toBuffer(),
    'animated gif': await animation.gif().toBuffer(),
  };
  for (const [name, bytes] of Object.entries(files)) {
    for (const position of [0.3, 0.97]) {
      const broken = Buffer.from(bytes);
      broken.fill(0xff, Math.floor(bytes.length * position), Math.floor(bytes.length * position) + 64);
      t.is(await checkOrFault(broken), damaged, `${name} at ${position}`);
    }
  }
  const jpeg = await drawNoise(20, 3_000).jpeg().toBuffer();
  t.is(await checkOrFault(jpeg.subarray(0, jpeg.length - 200)), damaged);
});

test('SVG, PDF, TIFF, HEIF and text never reach a decoder, not even SVG that starts with an XML declaration, a BOM or white space', async (t) => {
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="file:///etc/passwd"/></svg>';
  const disguises = [
    svg,
    `<?xml version="1.0"?>${svg}`,
    `\ufeff${svg}`,
    `\n ${svg}`,
    '%PDF-1.7\n',
    '<!DOCTYPE html>',
  ];
  for (const text of disguises) t.is(await checkOrFault(Buffer.from(text)), unknown, text);
  t.is(await checkOrFault(await drawNoise(9, 9).tiff().toBuffer()), unknown);
  t.is(await checkOrFault(await drawNoise(9, 9).avif().toBuffer()), unknown);
  t.is(await checkOrFault(Buffer.alloc(0)), unknown);
  t.is(await checkOrFault(Buffer.alloc(100)), unknown);
  t.is(await checkOrFault(Buffer.from('RIFF\0\0\0\0WAVEfmt ')), unknown);
  // Data that starts like an image goes to the decoder of its format, which rejects it.
  for (const start of [
    'GIF89a',
    'GIF87a          ',
    '\x89PNG\r\n\x1a\n',
    '\xff\xd8\xff',
    'RIFF\x20\0\0\0WEBP',
  ]) {
    t.is(await checkOrFault(Buffer.concat([Buffer.from(start, 'latin1'), Buffer.from(svg)])), damaged, start);
  }
});

test('data after the end of an image is ignored', async (t) => {
  for (const [name, draw] of Object.entries(images)) {
    const bytes = Buffer.concat([await draw(), Buffer.from('<svg/><script>alert(1)</script>PK\x03\x04')]);
    t.deepEqual<unknown, unknown>(
      await checkOrFault(bytes),
      { mediaType: `image/${name.split(',')[0]}`, pixels: 60_000 },
      name,
    );
  }
});

test('too many pixels are rejected after reading only the header', async (t) => {
  const tooMany = 'has more than 50 million pixels';
  const bomb = makeBlackPng(30_000, 30_000, 30_000);
  t.true(bomb.length < 1_000_000);
  t.is(await checkOrFault(bomb), tooMany);
  t.is(await checkOrFault(makeBlackPng(7_200, 7_000, 1)), tooMany);
  t.is(await checkOrFault(makeBlackPng(7_000, 7_000, 1)), damaged);
  t.deepEqual<unknown, unknown>(await checkOrFault(makeBlackPng(7_000, 7_000, 7_000)), {
    mediaType: 'image/png',
    pixels: 49_000_000,
  });
});

test('animations have a maximum number of pixels and of frames', async (t) => {
  const still = await sharp({ create: { width: 1_000, height: 1_000, channels: 3, background: 'red' } })
    .raw()
    .toBuffer();
  const frames = Buffer.concat(
    Array.from({ length: 60 }, (_, i) => Buffer.from(still).fill(i, 0, 3_000 * (i + 1))),
  );
  const raw = { width: 1_000, height: 60_000, channels: 3, pageHeight: 1_000 } as const;
  const animation = await sharp(frames, { raw, limitInputPixels: false })
    .gif({ effort: 1, colours: 8 })
    .toBuffer();
  t.is(await checkOrFault(animation), 'has more than 50 million pixels');
  t.deepEqual<unknown, unknown>(await checkOrFault(makeGif(1_000)), {
    mediaType: 'image/gif',
    pixels: 1_000,
  });
  t.is(await checkOrFault(makeGif(1_001)), 'has more than 1000 frames');
});

test('two images are decoded at a time, and aborting a waiting check rejects it with the abort reason', async (t) => {
  const check = checkImage;
  const bytes = makeBlackPng(7_000, 7_000, 7_000);
  const running = [check(bytes, 'ann', never()), check(bytes, 'bob', never())];
  const abort = new AbortController();
  const third = check(bytes, 'carol', abort.signal);
  const reason = new Error('the caller disconnected');
  abort.abort(reason);
  // The first two have just started, so only a waiting check can reject this soon.
  t.is(await t.throwsAsync(third), reason);
  for (const checked of await Promise.all(running)) t.true('mediaType' in checked);
});

test('an image of one account is decoded soon, even if many images of another account are waiting', async (t) => {
  const check = checkImage;
  const large = makeBlackPng(7_000, 7_000, 7_000);
  const finished: string[] = [];
  const flood = Array.from({ length: 6 }, async () => {
    await check(large, 'ann', never());
    finished.push('ann');
  });
  await check(makeBlackPng(10, 10, 10), 'bob', never());
  // In order of arrival it would come after five other images. On a busy machine one or two may finish earlier.
  t.true(finished.length < 5, `${finished.length} had finished`);
  await Promise.all(flood);
});
