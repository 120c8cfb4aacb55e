import test from 'ava';
import { deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';
import {
  makeManyFrames,
  makeRiffChunk,
  makeWebp,
  makeWebpCanvas,
  makeWebpFrame,
} from '../../../scripts/bench/suites/fairness/hostile-images.ts';
import { sniffImageType } from '../../../shared/contract/image-type.ts';
import { readImageSize } from '../../../workers/media/read-image-size.ts';
import {
  gifFrame,
  gifTrailer,
  makeFrameControl,
  makeGif,
  makeManyFramedGif,
  makePngChunk,
  repeat,
  withJpegComments,
  withPngChunks,
  withRepeatedScans,
} from '../../support/hostile-images.ts';
import { readThreadMs } from '../../support/thread-clock.ts';

/** The size of an image is read from its bytes, whatever they are, and limits apply before any decoder. */

/** Returns the problem, or the size as text. */
function read(bytes: Buffer): string {
  const size = readImageSize(bytes, sniffImageType(bytes)!, { countsFrames: true });
  return 'problem' in size ? size.problem : `${size.width}x${size.height}x${size.frames}`;
}

const damaged = 'cannot be decoded: it is damaged or cut off';
const tooManyPixels = 'has more than 50 million pixels';
const tooManyFrames = 'has more than 1000 frames';

function drawNoise(width: number, height: number, pageHeight?: number): Sharp {
  const bytes = Buffer.from(Array.from({ length: width * height * 4 }, (_, i) => (i * i * 7) % 251));
  const raw = { width, height, channels: 4 as const, ...(pageHeight === undefined ? {} : { pageHeight }) };
  return sharp(bytes, { raw });
}

const still = drawNoise(61, 40);
const animation = drawNoise(31, 120, 30);
const files: Readonly<Record<string, () => Promise<Buffer>>> = {
  png: () => still.clone().png().toBuffer(),
  'png, interlaced, with metadata': () =>
    still.clone().withMetadata({ icc: 'p3', orientation: 6 }).png({ progressive: true }).toBuffer(),
  'png, palette': () => still.clone().png({ palette: true }).toBuffer(),
  jpeg: () => still.clone().jpeg().toBuffer(),
  'jpeg, progressive, with metadata': () =>
    still.clone().withMetadata({ icc: 'p3', orientation: 6 }).jpeg({ progressive: true }).toBuffer(),
  'jpeg, CMYK': () => still.clone().toColourspace('cmyk').jpeg().toBuffer(),
  webp: () => still.clone().removeAlpha().webp().toBuffer(),
  'webp, with alpha and metadata': () => still.clone().withMetadata({ icc: 'p3' }).webp().toBuffer(),
  'webp, lossless': () => still.clone().webp({ lossless: true }).toBuffer(),
  'webp, animated': () => animation.clone().webp().toBuffer(),
  'webp, animated and lossless': () => animation.clone().webp({ lossless: true }).toBuffer(),
  gif: () => still.clone().gif().toBuffer(),
  'gif, animated': () => animation.clone().gif().toBuffer(),
};

for (const [name, make] of Object.entries(files)) {
  test(`the decoder finds the same size in a ${name}, with and without bytes after its end`, async (t) => {
    const bytes = await make();
    const { width, height, pages = 1 } = await sharp(bytes).metadata();
    const expected = `${width}x${height}x${pages}`;
    t.is(read(bytes), expected);
    t.is(read(Buffer.concat([bytes, bytes])), expected);
  });

  test(`a ${name} that is cut off anywhere is read without an error, as no larger than it is`, async (t) => {
    const bytes = await make();
    const { width, height, pages = 1 } = await sharp(bytes).metadata();
    // An assertion takes much longer than reading.
    const wrong: unknown[] = [];
    for (let end = 12; end < bytes.length; end += 1 + Math.floor(bytes.length / 500)) {
      const size = readImageSize(bytes.subarray(0, end), sniffImageType(bytes)!, { countsFrames: true });
      const isRight =
        'problem' in size
          ? size.problem === damaged
          : size.width <= width && size.height <= height && size.frames <= pages;
      if (!isRight) wrong.push({ end, size });
    }
    t.deepEqual(wrong, []);
  });

  test(`a ${name} with any byte replaced is read without an error`, async (t) => {
    const bytes = await make();
    const types = new Set<string>();
    for (let at = 12; at < Math.min(bytes.length, 600); at += 1) {
      for (const value of [0, 0x7f, 0xff]) {
        const broken = Buffer.from(bytes);
        broken[at] = value;
        types.add(typeof read(broken));
      }
    }
    t.deepEqual([...types], ['string']);
  });
}

test('an animated WebP has at most 1000 frames', async (t) => {
  t.is(read(await makeManyFrames(1_000)), '1x1x1000');
  t.is(read(await makeManyFrames(1_001)), tooManyFrames);
  const hostile = await makeManyFrames(110_000);
  t.true(hostile.length > 4_500_000);
  t.is(read(hostile), tooManyFrames);
});

test('lengths in a WebP that lead beyond its end, chunks within chunks and frames beyond the canvas hide nothing', async (t) => {
  const image = (await still.clone().removeAlpha().webp().toBuffer()).subarray(12);
  const canvas = makeWebpCanvas(61, 40);
  const frame = makeWebpFrame(image, 61, 40);
  t.is(read(makeWebp([canvas, frame, frame])), '61x40x2');
  const endless = Buffer.from(frame);
  endless.writeUInt32LE(0xffffffff, 4);
  t.is(read(makeWebp([canvas, endless])), '61x40x1');
  const withEndlessImage = Buffer.from(frame);
  withEndlessImage.writeUInt32LE(0xfffffff0, 8 + 16 + 4);
  t.is(
    read(makeWebp([canvas, withEndlessImage, frame])),
    '61x40x2',
    'the frame says where the next one begins',
  );
  t.is(read(makeWebp([canvas, makeWebpFrame(makeWebpFrame(frame), 61, 40)])), damaged);
  t.is(read(makeWebp([canvas, makeWebpFrame(image, 10_000, 10_000)])), tooManyPixels);
  t.is(read(makeWebp([makeWebpCanvas(16_777_216, 16_777_216), frame])), tooManyPixels);
  t.is(read(makeWebp([canvas])), damaged, 'no image at all');
  const lossless = Buffer.from([0x2f, 0xff, 0xff, 0xff, 0x0f, 0]);
  t.is(read(makeWebp([makeRiffChunk('VP8L', lossless)])), tooManyPixels);
  t.regex(
    read(makeWebp([canvas, ...repeat(makeRiffChunk('none', Buffer.alloc(0)), 100_001)])),
    /100000 chunks/,
  );
});

test('the frames of an APNG count, whatever it says itself', async (t) => {
  const png = await still.clone().png().toBuffer();
  const control = (frames: number): Buffer => {
    const content = Buffer.alloc(8);
    content.writeUInt32BE(frames);
    return makePngChunk('acTL', content);
  };
  const frame = makeFrameControl(61, 40);
  t.is(read(withPngChunks(png, [control(3), ...repeat(frame, 3)])), '61x40x3');
  t.is(read(withPngChunks(png, [control(1), ...repeat(frame, 1_001)])), tooManyFrames);
  t.is(read(withPngChunks(png, [control(0xffffffff), frame])), tooManyFrames);
  t.is(read(withPngChunks(png, [control(1), makeFrameControl(9_000, 9_000)])), tooManyPixels);
  t.is(read(withPngChunks(png, [makeFrameControl(0xffffffff, 1, 0xffffffff)])), tooManyPixels);
});

test('a PNG with very many chunks is refused; one with a large text or profile is read', async (t) => {
  const png = await still.clone().png().toBuffer();
  const empty = makePngChunk('teXt', Buffer.alloc(0));
  t.regex(read(withPngChunks(png, repeat(empty, 100_000))), /more than 100000 chunks/);
  const zipped = Buffer.concat([Buffer.from('name\0\0'), deflateSync(Buffer.alloc(50_000_000))]);
  for (const type of ['iCCP', 'zTXt'])
    t.is(read(withPngChunks(png, [makePngChunk(type, zipped)])), '61x40x1');
  const endless = makePngChunk('teXt', Buffer.alloc(0));
  endless.writeUInt32BE(0xffffffff);
  t.is(read(withPngChunks(png, [endless])), '61x40x1', 'the decoder finds it damaged');
});

test('a GIF has at most 1000 frames, needs no trailer, and counts the parts of frames beyond its screen', (t) => {
  t.is(read(makeManyFramedGif(1_000)), '1x1x1000');
  t.is(read(makeManyFramedGif(100_000)), tooManyFrames);
  t.is(read(makeGif([gifFrame, gifFrame])), '1x1x2');
  t.is(read(makeGif([gifFrame, gifTrailer, gifFrame])), '1x1x1');
  t.is(read(makeGif([gifTrailer])), damaged);
  const large = Buffer.from(gifFrame);
  large.fill(0xff, 1, 9);
  t.is(read(makeGif([large, gifTrailer])), tooManyPixels);
  const extension = Buffer.from('21fe00', 'hex');
  t.regex(read(makeGif([...repeat(extension, 100_000), gifFrame])), /more than 100000 chunks/);
  const crumbs = makeGif([gifFrame.subarray(0, 11), Buffer.alloc(3_000_000, 1)]);
  t.regex(read(crumbs), /more than 1 million blocks of data/);
});

test('a JPEG has at most 100 scans and 100 000 segments', async (t) => {
  const jpeg = await still.clone().jpeg({ progressive: true }).toBuffer();
  t.is(read(withRepeatedScans(jpeg, 50)), '61x40x1');
  t.is(read(withRepeatedScans(jpeg, 5_000)), 'has more than 100 scans. Save it again with another program');
  t.is(read(withJpegComments(jpeg, 90_000)), '61x40x1');
  t.regex(read(withJpegComments(jpeg, 100_000)), /more than 100000 chunks/);
});

/** Files of a size for which a reader has the most to do per byte. */
const slowest: Readonly<Record<string, (bytes: number) => Buffer>> = {
  'one GIF frame in small sub-blocks': (bytes) =>
    makeGif([gifFrame.subarray(0, 11), Buffer.alloc(bytes, 20)]),
  'a JPEG scan of restart markers': (bytes) =>
    Buffer.concat([Buffer.from('ffd8ffda0002', 'hex'), Buffer.alloc(bytes, Buffer.from('ffd0', 'hex'))]),
  'a JPEG without a marker': (bytes) => Buffer.concat([Buffer.from('ffd8ff', 'hex'), Buffer.alloc(bytes)]),
};

for (const [name, make] of Object.entries(slowest)) {
  test(`the time to read ${name} grows no faster than the file`, (t) => {
    const measure = (bytes: Buffer): number => {
      const took = Array.from({ length: 3 }, () => {
        const startedMs = readThreadMs();
        for (let i = 0; i < 10; i++) read(bytes);
        return readThreadMs() - startedMs;
      });
      // The clock counts whole milliseconds on some systems.
      return Math.max(1, Math.min(...took));
    };
    const [small, large] = [make(2_000_000), make(16_000_000)];
    read(large);
    const largeMs = measure(large);
    const ratio = largeMs / measure(small);
    t.log(`${ratio.toFixed(1)} times the time, ${largeMs.toFixed(0)} ms`);
    // Twice the time that eight times the bytes should take, and nowhere near 64 times.
    t.true(ratio < 16, `8 times the bytes took ${ratio} times the time`);
  });
}
