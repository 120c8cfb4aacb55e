import type openSharp from 'sharp';
import {
  iconNames,
  readIconShapes,
  type IconName,
  type IconShapes,
  type IconWeight,
} from './captcha-icons.ts';
import { between, createSecureRandom, someOf, type Random } from './captcha-random.ts';
import { drawIcon } from './draw-icon.ts';
import { drawBackground, drawScratches, drawScribbles, type Size } from './draw-background.ts';
import { iconCount, iconReach, imageHeight, imageWidth, placeIcons, type Point } from './place-icons.ts';

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

let shapes: IconShapes | undefined;
const secureRandom = createSecureRandom();

/**
 * Draws a captcha.
 * @param random the only source of the icons' positions and order; defaults to the system's cryptographic generator
 */
export async function drawCaptcha(random: Random = secureRandom): Promise<DrawnCaptcha> {
  shapes ??= await readIconShapes();
  const { imageSvg, promptSvg, icons } = composeCaptcha(random, shapes);
  return { image: await renderWebp(imageSvg), promptImage: await renderWebp(promptSvg), icons };
}

/**
 * Composes the SVGs of the image and the prompt, on the thread that serves requests. Rendering runs on sharp's threads.
 */
export function composeCaptcha(random: Random, shapes: IconShapes) {
  const names = someOf(random, iconNames, iconCount);
  const icons = placeIcons(random).map((place, i) => ({ ...place, name: names[i]! }));
  const { svg, weights } = drawImage(random, shapes, icons);
  return { imageSvg: svg, promptSvg: drawPrompt(random, shapes, names, weights), icons };
}

function drawImage(
  random: Random,
  shapes: IconShapes,
  icons: DrawnCaptcha['icons'],
): { svg: string; weights: IconWeight[] } {
  const weights = icons.map((): IconWeight => (random() < 0.5 ? 'bold' : 'fill'));
  const drawings = icons.map(({ name, x, y }, i) =>
    drawIcon(random, `i${i}`, {
      outline: shapes.get(name)![weights[i]!],
      centre: { x, y },
      reach: between(random, 0.8, 1) * iconReach,
      degrees: between(random, 25, 335),
      bend: 4,
    }),
  );
  const content = [
    drawBackground(random, imageSize),
    drawScribbles(random, imageSize, 90),
    ...drawings,
    drawScratches(random, imageSize, 6),
  ];
  return { svg: wrap(imageSize, content), weights };
}

/** Draws the icons that must be clicked. They are almost upright, and have a different weight than in the image. */
function drawPrompt(
  random: Random,
  shapes: IconShapes,
  names: readonly IconName[],
  weights: readonly IconWeight[],
): string {
  const { width, height } = promptCell;
  const drawings = names.slice(0, promptCount).map((name, i) =>
    drawIcon(random, `i${i}`, {
      outline: shapes.get(name)![weights[i] === 'bold' ? 'fill' : 'bold'],
      centre: { x: width * (i + 0.5), y: height / 2 },
      reach: between(random, 35, 39),
      degrees: between(random, -25, 25),
      bend: 1.2,
    }),
  );
  return wrap(promptSize, [
    drawBackground(random, promptSize),
    drawScribbles(random, promptSize, 12),
    ...drawings,
    drawScratches(random, promptSize, 3),
  ]);
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
  return await sharp(Buffer.from(svg)).webp({ quality: 60, effort: 2 }).toBuffer();
}
