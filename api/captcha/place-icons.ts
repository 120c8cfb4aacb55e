import { between, someOf, type Random } from './captcha-random.ts';

export const imageWidth = 480;
export const imageHeight = 320;
export const iconCount = 8;

/** Maximum distance of any part of an icon from its centre in pixels, including its outline. */
export const iconReach = 46;
/** Minimum distance of two centres, so that icons do not overlap however they are rotated and distorted. */
export const leastDistance = 2 * iconReach + 4;
/** Minimum distance of a centre from the border, so that no icon is cut off. */
export const leastMargin = iconReach + 2;

/** In pixels of an image, or units of an icon. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

/** Attempts before starting over: the first icons can leave no space for the last. */
const triesTogether = 400;

/** Picks random centres for an image's icons, in whole pixels, that keep the minimum distances. */
export function placeIcons(random: Random): Place[] {
  for (;;) {
    const places = tryToPlace(random);
    // Shuffle, because icons placed last are more often at the border than those placed first.
    if (places !== null) return someOf(random, places, iconCount);
  }
}

function tryToPlace(random: Random): Place[] | null {
  const places: Place[] = [];
  for (let tries = 0; tries < triesTogether; tries++) {
    const place = {
      x: Math.round(between(random, leastMargin, imageWidth - leastMargin)),
      y: Math.round(between(random, leastMargin, imageHeight - leastMargin)),
    };
    if (places.some(({ x, y }) => Math.hypot(x - place.x, y - place.y) < leastDistance)) continue;
    places.push(place);
    if (places.length === iconCount) return places;
  }
  return null;
}
