import test from 'ava';
import sharp from 'sharp';
import { readIconShapes } from '../../../api/captcha/captcha-icons.ts';
import { drawIcon } from '../../../api/captcha/draw-icon.ts';
import { createSecureRandom } from '../../../api/captcha/captcha-random.ts';
import { composeCaptcha, drawCaptcha, promptCount } from '../../../api/captcha/draw-captcha.ts';
import { iconCount, iconReach } from '../../../api/captcha/place-icons.ts';
import { createSeededRandom } from '../../crash/seeded-random.ts';
import { readThreadMs } from '../../support/thread-clock.ts';

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

test('no icon extends beyond its maximum radius, in any rotation and distortion', async (t) => {
  const seeded = createSeededRandom('16');
  const random = (): number => seeded.next();
  const cell = 2 * iconReach + 20;
  const columns = 13;
  const drawings = [...(await readIconShapes()).values()].flatMap(({ bold, fill }) => [bold, fill]);
  const height = Math.ceil(drawings.length / columns) * cell;
  const centreOf = (i: number) => ({
    x: ((i % columns) + 0.5) * cell,
    y: (Math.floor(i / columns) + 0.5) * cell,
  });
  const icons = drawings.map((outline, i) =>
    drawIcon(random, `i${i}`, {
      outline,
      centre: centreOf(i),
      reach: iconReach,
      degrees: random() * 360,
      bend: 4,
    }),
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${columns * cell}" height="${height}">${icons.join('')}</svg>`;
  const { data, info } = await sharp(Buffer.from(svg))
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const farthest = drawings.map(() => 0);
  for (let y = 0; y < info.height; y++) {
    for (let x = 0; x < info.width; x++) {
      if (data[(y * info.width + x) * 4 + 3]! < 32) continue;
      const i = Math.floor(y / cell) * columns + Math.floor(x / cell);
      const centre = centreOf(i);
      farthest[i] = Math.max(farthest[i]!, Math.hypot(x + 0.5 - centre.x, y + 0.5 - centre.y));
    }
  }
  for (const reach of farthest) {
    t.true(reach <= iconReach + 1, `${reach}`);
    // The clickable area is not much larger than the icon either.
    t.true(reach > iconReach * 0.6, `${reach}`);
  }
});

test('composing a captcha takes less than 2 ms of CPU time on the thread that serves requests', async (t) => {
  const shapes = await readIconShapes();
  const random = createSecureRandom();
  const compose = (): unknown => composeCaptcha(random, shapes);
  // The first iterations run code that is not JIT-compiled yet.
  for (let i = 0; i < 50; i++) compose();
  const before = readThreadMs();
  for (let i = 0; i < 50; i++) compose();
  const each = (readThreadMs() - before) / 50;
  t.log(`${each.toFixed(2)} ms`);
  t.true(each < 2, `${each} ms`);
});
