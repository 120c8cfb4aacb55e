import sharp, { type Sharp } from 'sharp';
import { iconUnits } from '../../../../api/account-area/captcha/captcha-icons.ts';
import { formatOutline, type Outline } from '../../../../api/account-area/captcha/outline.ts';
import type { Point } from '../../../../api/account-area/captcha/place-icons.ts';

/** An image with one number per pixel: its lightness, or the gradient of its lightness. */
export interface PixelMap {
  readonly width: number;
  readonly height: number;
  readonly values: Float32Array;
}

export type MapKind = 'lightness' | 'edges';

/** Image pixels per map pixel, in each direction: fine enough for 80-pixel shapes, and 25 times faster. */
const reduction = 5;
/** Step between tested positions, in map pixels. */
const stride = 2;
/** Number of best positions per template whose neighbours are tested as well. */
const refinedCount = 10;

export type PixelMaps = Readonly<Record<MapKind, PixelMap>>;

export async function mapPixels(image: Sharp): Promise<PixelMaps> {
  const { data, info } = await image.greyscale().raw().toBuffer({ resolveWithObject: true });
  const full = { width: info.width, height: info.height, values: Float32Array.from(data) };
  return { lightness: reduce(full), edges: reduce(findEdges(full)) };
}

/** Prepares an image as a template for `findBest`. */
export async function mapTemplate(image: Sharp): Promise<PixelMaps> {
  const { lightness, edges } = await mapPixels(image);
  return { lightness: normalise(lightness), edges: normalise(edges) };
}

/** An icon drawn from its file, rotated, black on white. `size` is its width in pixels. */
export function drawPlainIcon(outline: Outline, size: number, degrees: number): Sharp {
  const half = iconUnits / 2;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}" viewBox="0 0 ${iconUnits} ${iconUnits}"><rect width="100%" height="100%" fill="white"/><path transform="rotate(${degrees} ${half} ${half}) scale(.1)" d="${formatOutline(outline, 10)}"/></svg>`;
  return sharp(Buffer.from(svg));
}

/** The position where one of the templates correlates best with the image, in image pixels. */
export function findBest(map: PixelMap, templates: readonly PixelMap[]): Point {
  let best = { x: 0, y: 0, score: -1 };
  for (const template of templates) {
    const deviations = deviationsOf(map, template);
    const columns = map.width - template.width + 1;
    const rows = map.height - template.height + 1;
    const scoreAt = (left: number, top: number): number => {
      // A light icon on a dark background scores the same as a dark one on a light background.
      const score = Math.abs(multiply(map, template, left, top)) / deviations[top * columns + left]!;
      if (score > best.score) {
        const x = (left + template.width / 2) * reduction;
        const y = (top + template.height / 2) * reduction;
        best = { x, y, score };
      }
      return score;
    };
    const coarse: { left: number; top: number; score: number }[] = [];
    for (let top = 0; top < rows; top += stride) {
      for (let left = 0; left < columns; left += stride) {
        coarse.push({ left, top, score: scoreAt(left, top) });
      }
    }
    coarse.sort((a, b) => b.score - a.score);
    for (const { left, top } of coarse.slice(0, refinedCount)) {
      for (let y = Math.max(0, top - 1); y <= Math.min(rows - 1, top + 1); y++) {
        for (let x = Math.max(0, left - 1); x <= Math.min(columns - 1, left + 1); x++) scoreAt(x, y);
      }
    }
  }
  return best;
}

function multiply(map: PixelMap, template: PixelMap, left: number, top: number): number {
  const { width, height, values } = template;
  const { values: pixels, width: mapWidth } = map;
  let product = 0;
  for (let y = 0, i = 0; y < height; y++) {
    let at = (top + y) * mapWidth + left;
    for (let x = 0; x < width; x++) product += pixels[at++]! * values[i++]!;
  }
  return product;
}

const knownDeviations = new WeakMap<PixelMap, Map<number, Float32Array>>();

/** The norm of the values minus their mean, at each position. A product divided by this norm is a correlation. */
function deviationsOf(map: PixelMap, { width, height }: PixelMap): Float32Array {
  const known = knownDeviations.get(map) ?? new Map<number, Float32Array>();
  knownDeviations.set(map, known);
  const found = known.get(width);
  if (found !== undefined) return found;
  const deviations: number[] = [];
  for (let top = 0; top + height <= map.height; top++) {
    for (let left = 0; left + width <= map.width; left++) {
      let sum = 0;
      let squares = 0;
      for (let y = 0; y < height; y++) {
        const row = (top + y) * map.width + left;
        for (let x = 0; x < width; x++) {
          const value = map.values[row + x]!;
          sum += value;
          squares += value * value;
        }
      }
      deviations.push(Math.sqrt(Math.max(1, squares - (sum * sum) / (width * height))));
    }
  }
  const all = Float32Array.from(deviations);
  known.set(width, all);
  return all;
}

/** Shifts the mean to 0 and scales the norm to 1, so that a product with the map is a correlation. */
function normalise(map: PixelMap): PixelMap {
  const mean = map.values.reduce((sum, value) => sum + value, 0) / map.values.length;
  const centred = map.values.map((value) => value - mean);
  const length = Math.sqrt(centred.reduce((sum, value) => sum + value * value, 0)) || 1;
  return { ...map, values: centred.map((value) => value / length) };
}

/** The gradient magnitude of the lightness at each pixel (Sobel operator). */
function findEdges({ width, height, values }: PixelMap): PixelMap {
  const edges = new Float32Array(values.length);
  for (let y = 1; y < height - 1; y++) {
    for (let x = 1; x < width - 1; x++) {
      const at = (dx: number, dy: number): number => values[(y + dy) * width + x + dx]!;
      const across = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
      const down = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
      // Math.hypot takes several times as long.
      edges[y * width + x] = Math.sqrt(across * across + down * down);
    }
  }
  return { width, height, values: edges };
}

function reduce({ width, height, values }: PixelMap): PixelMap {
  const [w, h] = [Math.floor(width / reduction), Math.floor(height / reduction)];
  const means = new Float32Array(w * h);
  for (let y = 0; y < h * reduction; y++) {
    const row = Math.floor(y / reduction) * w;
    for (let x = 0; x < w * reduction; x++)
      means[row + Math.floor(x / reduction)]! += values[y * width + x]! / reduction ** 2;
  }
  return { width: w, height: h, values: means };
}
