import test from 'ava';
import sharp from 'sharp';
import { iconNames, readIconShapes } from '../../../../api/account-area/captcha/captcha-icons.ts';
import {
  createSecureRandom,
  type CaptchaRandom,
} from '../../../../api/account-area/captcha/captcha-random.ts';
import {
  composeCaptcha,
  cutOut,
  drawCaptcha,
  promptCount,
} from '../../../../api/account-area/captcha/draw-captcha.ts';
import { drawCovers } from '../../../../api/account-area/captcha/draw-covering.ts';
import { drawFragments } from '../../../../api/account-area/captcha/draw-fragments.ts';
import { drawIcon } from '../../../../api/account-area/captcha/draw-icon.ts';
import {
  iconCount,
  iconReach,
  imageHeight,
  imageWidth,
  placeIcons,
  type Point,
  type Size,
} from '../../../../api/account-area/captcha/place-icons.ts';
import {
  backdrops,
  clutters,
  coverings,
  finishes,
  pickStyle,
  type Finish,
} from '../../../../api/account-area/captcha/style.ts';
import { createSeededRandom } from '../../../crash/seeded-random.ts';
import { readThreadMs } from '../../../support/thread-clock.ts';

const seeded = createSeededRandom('16');
const random: CaptchaRandom = () => seeded.next();
const imageSize: Size = { width: imageWidth, height: imageHeight };
const weights = ['bold', 'fill'] as const;

test('an image has eight different icons, and the prompt shows the first four', async (t) => {
  const { image, promptImage, icons } = await drawCaptcha();
  t.is(new Set(icons.map(({ name }) => name)).size, iconCount);
  t.like(await sharp(image).metadata(), { format: 'webp', width: 480, height: 320 });
  t.like(await sharp(promptImage).metadata(), { format: 'webp', width: promptCount * 80, height: 84 });
});

test('no two captchas are alike, and each is small', async (t) => {
  const captchas = [];
  for (let i = 0; i < 12; i++) captchas.push(await drawCaptcha());
  t.is(new Set(captchas.map(({ image }) => image.toString('base64'))).size, captchas.length);
  t.is(new Set(captchas.map(({ promptImage }) => promptImage.toString('base64'))).size, captchas.length);
  t.is(new Set(captchas.map(({ icons }) => JSON.stringify(icons))).size, captchas.length);
  for (const { image, promptImage } of captchas) {
    t.true(((image.length + promptImage.length) * 4) / 3 < 60_000);
  }
});

/** Draws every icon with every finish, and returns the distance of its farthest pixel from its centre. */
async function measureReach(finish: Finish): Promise<number[]> {
  const cell = 2 * iconReach + 20;
  const columns = 6;
  const all = [...(await readIconShapes()).values()];
  const drawn = all.flatMap((shape) => weights.map((weight) => ({ shape, weight })));
  const height = Math.ceil(drawn.length / columns) * cell;
  const centreOf = (i: number) => ({
    x: ((i % columns) + 0.5) * cell,
    y: (Math.floor(i / columns) + 0.5) * cell,
  });
  const icons = drawn.map(({ shape, weight }, i) => {
    const { palette, tilt } = pickStyle(random);
    return drawIcon(random, `i${i}`, {
      shape,
      weight,
      finish,
      palette,
      centre: centreOf(i),
      reach: iconReach,
      degrees: random() * 360,
      bend: 4,
      tilt,
    });
  });
  const alpha = await renderAlpha(icons.join(''), { width: columns * cell, height });
  const farthest = drawn.map(() => 0);
  for (let y = 0; y < alpha.height; y++) {
    for (let x = 0; x < alpha.width; x++) {
      if (alpha.at(x, y) < 32) continue;
      const i = Math.floor(y / cell) * columns + Math.floor(x / cell);
      const centre = centreOf(i);
      farthest[i] = Math.max(farthest[i]!, Math.hypot(x + 0.5 - centre.x, y + 0.5 - centre.y));
    }
  }
  return farthest;
}

for (const finish of finishes) {
  test(`no ${finish} icon extends beyond its maximum radius, in any rotation and distortion`, async (t) => {
    for (const reach of await measureReach(finish)) {
      t.true(reach <= iconReach + 1, `${reach}`);
      // The clickable area is not much larger than the icon either.
      t.true(reach > iconReach * 0.6, `${reach}`);
    }
  });
}

for (const covering of coverings) {
  test(`${covering} leave most of each icon visible`, async (t) => {
    const shares: number[] = [];
    for (let round = 0; round < 12; round++) {
      const icons = placeIcons(random);
      const covers = drawCovers(random, covering, {
        size: imageSize,
        palette: pickStyle(random).palette,
        centres: icons,
        reach: iconReach,
      });
      const discs = icons.map(({ x, y }) => `<circle cx="${x}" cy="${y}" r="${iconReach}"/>`).join('');
      const visible = await renderAlpha(
        `<mask id="m"><rect width="100%" height="100%" fill="white"/><g style="filter:brightness(0)">${covers.over}</g></mask><g mask="url(#m)">${cutOut(discs, { ...covers, over: '' })}</g>`,
        imageSize,
      );
      for (const centre of icons) shares.push(shareAround(visible, centre, iconReach));
    }
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    t.log(`${(100 * mean).toFixed(0)} % visible, at least ${(100 * Math.min(...shares)).toFixed(0)} %`);
    t.true(mean > 0.75, `${mean}`);
    t.true(mean < 0.98, `${mean}`);
    t.true(Math.min(...shares) > 0.5, `${Math.min(...shares)}`);
  });
}

test('distractors stay off the middle of every icon', async (t) => {
  const shapes = await readIconShapes();
  for (let round = 0; round < 20; round++) {
    const icons = placeIcons(random).map((place, i) => ({ ...place, name: iconNames[i]! }));
    const options = { shapes, style: pickStyle(random), size: imageSize, icons };
    const alpha = await renderAlpha(drawFragments(random, options, { pieces: 9, decoys: 3 }), imageSize);
    t.true(shareAround(alpha, { x: imageWidth / 2, y: imageHeight / 2 }, imageWidth) > 0);
    for (const centre of icons) t.is(shareAround(alpha, centre, iconReach * 0.6), 0);
  }
});

test('styles use every backdrop, clutter, covering and finish, and an image has another style than its prompt', (t) => {
  const styles = Array.from({ length: 400 }, () => pickStyle(random));
  t.is(new Set(styles.map(({ backdrop }) => backdrop)).size, backdrops.length);
  t.is(new Set(styles.map(({ clutter }) => clutter)).size, clutters.length);
  t.is(new Set(styles.map(({ covering }) => covering)).size, coverings.length);
  t.is(new Set(styles.flatMap((style) => style.finishes)).size, finishes.length);
  t.is(new Set(styles.map((style) => JSON.stringify(style))).size, styles.length);
});

test('the files contain pixels only: no metadata', async (t) => {
  for (let round = 0; round < 4; round++) {
    const { image, promptImage } = await drawCaptcha();
    for (const file of [image, promptImage]) {
      // A lossy WebP without metadata, alpha and animation is one chunk.
      t.is(file.toString('latin1', 8, 16), 'WEBPVP8 ');
      t.is(file.readUInt32LE(16) + 20 + (file.readUInt32LE(16) % 2), file.length);
    }
  }
});

interface Alpha {
  readonly width: number;
  readonly height: number;
  readonly at: (x: number, y: number) => number;
}

async function renderAlpha(content: string, { width, height }: Size): Promise<Alpha> {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${content}</svg>`;
  const { data, info } = await sharp(Buffer.from(svg))
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { ...info, at: (x, y) => data[(y * info.width + x) * 4 + 3]! };
}

/** The share of the pixels in a circle that are painted. */
function shareAround({ width, height, at }: Alpha, centre: Point, radius: number): number {
  let painted = 0;
  let all = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (Math.hypot(x + 0.5 - centre.x, y + 0.5 - centre.y) > radius) continue;
      all++;
      if (at(x, y) >= 128) painted++;
    }
  }
  return painted / all;
}

test('composing a captcha takes less time on the thread that serves requests than a body of 256 KB of JSON', async (t) => {
  const shapes = await readIconShapes();
  const secureRandom = createSecureRandom();
  const values = Array.from({ length: 13_000 }, (_, i) => ({ x: i, y: i / 7 }));
  const body = JSON.stringify(values).slice(0, 256 * 1024);
  const json = `${body.slice(0, body.lastIndexOf('},'))}}]`;
  const measure = (count: number, work: () => unknown): number => {
    const before = readThreadMs();
    for (let i = 0; i < count; i++) work();
    return (readThreadMs() - before) / count;
  };
  const compose = (): unknown => composeCaptcha(secureRandom, shapes);
  // The first iterations run code that is not JIT-compiled yet.
  measure(150, compose);
  // The fastest of several batches, in turns: a busy machine makes others slower, because threads share caches.
  const composed: number[] = [];
  const parsed: number[] = [];
  for (let i = 0; i < 10; i++) {
    composed.push(measure(20, compose));
    parsed.push(measure(20, () => JSON.parse(json)));
  }
  const [each, reference] = [Math.min(...composed), Math.min(...parsed)];
  t.log(`${each.toFixed(2)} ms, and ${reference.toFixed(2)} ms for the body`);
  t.true(each < reference, `${each} ms, and ${reference} ms for the body`);
});
