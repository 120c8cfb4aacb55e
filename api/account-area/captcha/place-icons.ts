import { between, someOf, type CaptchaRandom } from './captcha-random.ts';

export const imageWidth = 480;
export const imageHeight = 320;
export const iconCount = 8;

/** Maximum distance of any part of an icon from its centre in pixels, including its outline. */
export const iconReach = 46;
/** Minimum distance of two centres, so that icons do not overlap however they are rotated and distorted. */
export const minDistance = 2 * iconReach + 4;
/** Minimum distance of a centre from the border, so that no icon is cut off. */
export const minMargin = iconReach + 2;

/** In pixels of an image, or units of an icon. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Attempts before starting over: after the first icons are placed, there may be no space for the last one. */
const maxAttempts = 400;

/** Picks random centres for an image's icons, in whole pixels, that keep the minimum distances. */
export function placeIcons(random: CaptchaRandom): Point[] {
  for (;;) {
    const points = tryToPlace(random);
    // Shuffle, because icons placed last are more often at the border than those placed first.
    if (points !== null) return someOf(random, points, iconCount);
  }
}

function tryToPlace(random: CaptchaRandom): Point[] | null {
  const points: Point[] = [];
  for (let attempts = 0; attempts < maxAttempts; attempts++) {
    const point = {
      x: Math.round(between(random, minMargin, imageWidth - minMargin)),
      y: Math.round(between(random, minMargin, imageHeight - minMargin)),
    };
    if (points.some(({ x, y }) => Math.hypot(x - point.x, y - point.y) < minDistance)) continue;
    points.push(point);
    if (points.length === iconCount) return points;
  }
  return null;
}
