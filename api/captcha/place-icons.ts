import { between, someOf, type Random } from './captcha-random.ts';

export const imageWidth = 480;
export const imageHeight = 320;
export const iconCount = 8;

/** No part of an icon is farther from its centre, in pixels, its outline included. */
export const iconReach = 46;
/** Between the centres of two icons, so that none overlap however they are turned and bent. */
export const leastDistance = 2 * iconReach + 4;
/** From a centre to the border: no icon is cut. */
export const leastMargin = iconReach + 2;

/** In pixels of an image, or units of an icon. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

/** Tries before all are placed anew: the first few can leave no room for the last. */
const triesTogether = 400;

/** The centres of the icons of an image, in whole pixels: each anywhere that keeps its distances. */
export function placeIcons(random: Random): Place[] {
  for (;;) {
    const places = tryToPlace(random);
    // In an order of chance: those that are placed last lie more often at the border than those that are placed first.
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
