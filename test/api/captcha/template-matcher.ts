import sharp, { type Sharp } from 'sharp';
import { iconUnits } from '../../../api/captcha/captcha-icons.ts';
import { formatOutline, type Outline } from '../../../api/captcha/outline.ts';
import type { Place } from '../../../api/captcha/place-icons.ts';

/** A picture as one number a pixel: its lightness, or how strongly it changes there. */
export interface PixelMap {
  readonly width: number;
  readonly height: number;
  readonly values: Float32Array;
}

export type MapKind = 'lightness' | 'edges';

/** Pixels of the picture that one of the map stands for: enough for shapes of 80 pixels, and 25 times quicker. */
const reduction = 5;
/** Pixels of the map from one place that is tried to the next. */
const stride = 2;
/** Of these best places of a template all neighbours are tried as well. */
const refined = 10;

export type PixelMaps = Readonly<Record<MapKind, PixelMap>>;

export async function mapPixels(picture: Sharp): Promise<PixelMaps> {
  const { data, info } = await picture.greyscale().raw().toBuffer({ resolveWithObject: true });
  const full = { width: info.width, height: info.height, values: Float32Array.from(data) };
  return { lightness: reduce(full), edges: reduce(findEdges(full)) };
}

/** A picture of what is looked for, to be used by `findBest`. */
export async function mapTemplate(picture: Sharp): Promise<PixelMaps> {
  const { lightness, edges } = await mapPixels(picture);
  return { lightness: normalise(lightness), edges: normalise(edges) };
}

/** An icon as its file has it but turned, black on white; of so many pixels from side to side. */
export function drawPlainIcon(outline: Outline, size: number, degrees: number): Sharp {
  const half = iconUnits / 2;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}" viewBox="0 0 ${iconUnits} ${iconUnits}"><rect width="100%" height="100%" fill="white"/><path transform="rotate(${degrees} ${half} ${half}) scale(.1)" d="${formatOutline(outline, 10)}"/></svg>`;
  return sharp(Buffer.from(svg));
}

/** Where one of the templates correlates best with the picture; in pixels of the picture. */
export function findBest(map: PixelMap, templates: readonly PixelMap[]): Place {
  let best = { x: 0, y: 0, score: -1 };
  for (const template of templates) {
    const lengths = lengthsOf(map, template);
    const columns = map.width - template.width + 1;
    const rows = map.height - template.height + 1;
    const scoreAt = (left: number, top: number): number => {
      // A light icon on a dark ground is the same icon as a dark one on a light ground.
      const score = Math.abs(multiply(map, template, left, top)) / lengths[top * columns + left]!;
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
    for (const { left, top } of coarse.slice(0, refined)) {
      for (let y = Math.max(0, top - 1); y <= Math.min(rows - 1, top + 1); y++) {
        for (let x = Math.max(0, left - 1); x <= Math.min(columns - 1, left + 1); x++) scoreAt(x, y);
      }
    }
  }
  return best;
}

function multiply(map: PixelMap, template: PixelMap, left: number, top: number): number {
  let product = 0;
  for (let y = 0, i = 0; y < template.height; y++) {
    let at = (top + y) * map.width + left;
    for (let x = 0; x < template.width; x++) product += map.values[at++]! * template.values[i++]!;
  }
  return product;
}

const knownLengths = new WeakMap<PixelMap, Map<number, Float32Array>>();

/** What the products are divided by, at each place: how far the values there are from their mean. */
function lengthsOf(map: PixelMap, { width, height }: PixelMap): Float32Array {
  const known = knownLengths.get(map) ?? new Map<number, Float32Array>();
  knownLengths.set(map, known);
  const found = known.get(width);
  if (found !== undefined) return found;
  const lengths: number[] = [];
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
      lengths.push(Math.sqrt(Math.max(1, squares - (sum * sum) / (width * height))));
    }
  }
  const all = Float32Array.from(lengths);
  known.set(width, all);
  return all;
}

/** So that its mean is 0 and its length 1: a product with it is then a correlation. */
function normalise(map: PixelMap): PixelMap {
  const mean = map.values.reduce((sum, value) => sum + value, 0) / map.values.length;
  const centred = map.values.map((value) => value - mean);
  const length = Math.sqrt(centred.reduce((sum, value) => sum + value * value, 0)) || 1;
  return { ...map, values: centred.map((value) => value / length) };
}

/** How strongly the lightness changes at each pixel, whichever way (Sobel's operator). */
function findEdges({ width, height, values }: PixelMap): PixelMap {
  const edges = new Float32Array(values.length);
  for (let y = 1; y < height - 1; y++) {
    for (let x = 1; x < width - 1; x++) {
      const at = (dx: number, dy: number): number => values[(y + dy) * width + x + dx]!;
      const across = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
      const down = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
      edges[y * width + x] = Math.hypot(across, down);
    }
  }
  return { width, height, values: edges };
}

function reduce({ width, height, values }: PixelMap): PixelMap {
  const [w, h] = [Math.floor(width / reduction), Math.floor(height / reduction)];
  const means = new Float32Array(w * h);
  for (let y = 0; y < h * reduction; y++) {
    for (let x = 0; x < w * reduction; x++) {
      means[Math.floor(y / reduction) * w + Math.floor(x / reduction)]! +=
        values[y * width + x]! / reduction ** 2;
    }
  }
  return { width: w, height: h, values: means };
}
