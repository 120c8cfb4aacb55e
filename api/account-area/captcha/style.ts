import { between, oneOf, someOf, type CaptchaRandom } from './captcha-random.ts';
import { pickPalette, type Palette } from './palette.ts';

/** How the area of an icon is painted. */
export const finishes = [
  'solid',
  'contour',
  'dashed',
  'hatched',
  'dotted',
  'ringed',
  'shadowed',
  'duotone',
] as const;
export type Finish = (typeof finishes)[number];

/** What lies under the icons. */
export const backdrops = ['patches', 'stripes', 'grid', 'dots', 'rings', 'facets', 'clouds'] as const;
export type Backdrop = (typeof backdrops)[number];

/** What covers a part of each icon, or is cut out of it. */
export const coverings = ['bars', 'blobs', 'gaps'] as const;
export type Covering = (typeof coverings)[number];

/** What is strewn under the icons. */
export const clutters = ['scribbles', 'shards', 'rods'] as const;
export type Clutter = (typeof clutters)[number];

/** How one image is drawn. An image and its prompt have different styles. */
export interface Style {
  readonly palette: Palette;
  readonly backdrop: Backdrop;
  readonly clutter: Clutter;
  readonly covering: Covering;
  /** Each icon has one of these. */
  readonly finishes: readonly Finish[];
  /** The tilt of the plane that icons are seen on: the change of their scale per pixel, to the right and down. */
  readonly tilt: readonly [across: number, down: number];
}

const maxTilt = 0.0045;

export function pickStyle(random: CaptchaRandom, usable: readonly Finish[] = finishes): Style {
  return {
    palette: pickPalette(random),
    backdrop: oneOf(random, backdrops),
    clutter: oneOf(random, clutters),
    covering: oneOf(random, coverings),
    finishes: someOf(random, usable, 3),
    tilt: [between(random, -maxTilt, maxTilt), between(random, -maxTilt, maxTilt)],
  };
}
