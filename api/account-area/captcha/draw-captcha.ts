import type openSharp from 'sharp';
import {
  iconNames,
  readIconShapes,
  type IconName,
  type IconShapes,
  type IconWeight,
} from './captcha-icons.ts';
import { between, createSecureRandom, oneOf, someOf, type CaptchaRandom } from './captcha-random.ts';
import { drawBackdrop } from './draw-backdrop.ts';
import { drawClutter, drawScratches } from './draw-clutter.ts';
import { drawCovers, type Covers } from './draw-covering.ts';
import { drawFragments } from './draw-fragments.ts';
import { drawIcon } from './draw-icon.ts';
import {
  iconCount,
  iconReach,
  imageHeight,
  imageWidth,
  placeIcons,
  type Point,
  type Size,
} from './place-icons.ts';
import { finishes, pickStyle } from './style.ts';

/** Number of icons in the prompt, to be clicked in its order. */
export const promptCount = 4;
/** Size of each icon in the prompt; they are side by side. */
export const promptCell: Size = { width: 80, height: 84 };

export interface DrawnCaptcha {
  /** WebP files. */
  readonly image: Buffer;
  readonly promptImage: Buffer;
  /** All icons of the image with their centres in pixels. The prompt's icons come first, in its order. */
  readonly icons: readonly (Point & { readonly name: IconName })[];
}

const imageSize: Size = { width: imageWidth, height: imageHeight };
const promptSize: Size = { width: promptCount * promptCell.width, height: promptCell.height };

/** The prompt's icons are small, so dashes would leave too little of them. */
const promptFinishes = finishes.filter((finish) => finish !== 'dashed');

let shapes: IconShapes | undefined;
const secureRandom = createSecureRandom();

/**
 * Draws a captcha.
 * @param random the only source of the icons' positions and order; defaults to the system's cryptographic generator
 */
export async function drawCaptcha(random: CaptchaRandom = secureRandom): Promise<DrawnCaptcha> {
  shapes ??= await readIconShapes();
  const { imageSvg, promptSvg, icons } = composeCaptcha(random, shapes);
  return { image: await renderWebp(imageSvg), promptImage: await renderWebp(promptSvg), icons };
}

/**
 * Composes the SVGs of the image and the prompt, on the thread that serves requests. Rendering runs on sharp's threads.
 */
export function composeCaptcha(random: CaptchaRandom, shapes: IconShapes) {
  const names = someOf(random, iconNames, iconCount);
  const icons = placeIcons(random).map((place, i) => ({ ...place, name: names[i]! }));
  const weights = icons.map((): IconWeight => (random() < 0.5 ? 'bold' : 'fill'));
  return {
    imageSvg: drawImage(random, shapes, icons, weights),
    promptSvg: drawPrompt(random, shapes, names, weights),
    icons,
  };
}

function drawImage(
  random: CaptchaRandom,
  shapes: IconShapes,
  icons: DrawnCaptcha['icons'],
  weights: readonly IconWeight[],
): string {
  const style = pickStyle(random);
  const { palette } = style;
  const drawings = icons.map(({ name, x, y }, i) =>
    drawIcon(random, `i${i}`, {
      shape: shapes.get(name)!,
      weight: weights[i]!,
      finish: oneOf(random, style.finishes),
      palette,
      centre: { x, y },
      reach: between(random, 0.85, 1) * iconReach,
      degrees: between(random, 25, 335),
      bend: 4,
      tilt: style.tilt,
    }),
  );
  const covers = drawCovers(random, style.covering, {
    size: imageSize,
    palette,
    centres: icons,
    reach: iconReach,
  });
  return wrap(imageSize, [
    drawBackdrop(random, style.backdrop, imageSize, palette),
    drawClutter(random, style.clutter, imageSize, 40),
    drawFragments(random, { shapes, style, size: imageSize, icons }, { pieces: 9, decoys: 3 }),
    cutOut(drawings.join(''), covers),
    drawScratches(random, imageSize, 5),
  ]);
}

/**
 * Draws the icons that must be clicked. They are almost upright, in another style, and in the other weight if their
 * finish takes both.
 */
function drawPrompt(
  random: CaptchaRandom,
  shapes: IconShapes,
  names: readonly IconName[],
  weights: readonly IconWeight[],
): string {
  const style = pickStyle(random, promptFinishes);
  const { palette } = style;
  const { width, height } = promptCell;
  const icons = names.slice(0, promptCount).map((name, i) => ({ name, x: width * (i + 0.5), y: height / 2 }));
  const drawings = icons.map(({ name, x, y }, i) =>
    drawIcon(random, `i${i}`, {
      shape: shapes.get(name)!,
      weight: weights[i] === 'bold' ? 'fill' : 'bold',
      finish: oneOf(random, style.finishes),
      palette,
      centre: { x, y },
      reach: between(random, 35, 39),
      degrees: between(random, -25, 25),
      bend: 1.2,
      tilt: style.tilt,
    }),
  );
  const covers = drawCovers(random, style.covering, { size: promptSize, palette, centres: icons, reach: 30 });
  return wrap(promptSize, [
    drawBackdrop(random, style.backdrop, promptSize, palette),
    drawClutter(random, style.clutter, promptSize, 12),
    cutOut(drawings.join(''), covers),
    drawScratches(random, promptSize, 3),
  ]);
}

/** Covers drawings, or cuts holes into them. */
export function cutOut(drawings: string, { over, clip }: Covers): string {
  if (clip === undefined) return drawings + over;
  return `<clipPath id="cut"><path d="${clip}" clip-rule="evenodd"/></clipPath><g clip-path="url(#cut)">${drawings}</g>${over}`;
}

function wrap({ width, height }: Size, content: readonly string[]): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">${content.join('')}</svg>`;
}

let loadedSharp: Promise<typeof openSharp> | undefined;

/** Loaded on first use, so that a process without captcha requests never loads it. */
async function loadSharp(): Promise<typeof openSharp> {
  const { default: sharp } = await import('sharp');
  sharp.concurrency(1);
  sharp.cache(false);
  return sharp;
}

async function renderWebp(svg: string): Promise<Buffer> {
  loadedSharp ??= loadSharp();
  const sharp = await loadedSharp;
  return await sharp(Buffer.from(svg)).webp({ quality: 52, effort: 2 }).toBuffer();
}
