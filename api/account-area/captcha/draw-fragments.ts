import { between, oneOf, type CaptchaRandom } from './captcha-random.ts';
import { createBend } from './bend-outline.ts';
import { iconNames, type IconName, type IconShapes, type IconWeight } from './captcha-icons.ts';
import { drawIcon } from './draw-icon.ts';
import { formatOutline, reachOf, type Outline } from './outline.ts';
import { pickClutter } from './palette.ts';
import { iconReach, type Point, type Size } from './place-icons.ts';
import type { Style } from './style.ts';

export interface FragmentOptions {
  readonly shapes: IconShapes;
  readonly style: Style;
  readonly size: Size;
  /** The icons that people must find, and those beside them. */
  readonly icons: readonly (Point & { readonly name: IconName })[];
}

/** Attempts to find a place for a distractor. */
const tries = 12;

/**
 * Draws distractors between the icons: pieces of icons, much smaller than icons, and small mirrored icons that the image
 * does not show otherwise. People see that these are not the icons they look for.
 */
export function drawFragments(
  random: CaptchaRandom,
  { shapes, style, size, icons }: FragmentOptions,
  { pieces, decoys }: { readonly pieces: number; readonly decoys: number },
): string {
  const shown = new Set(icons.map(({ name }) => name));
  const others = iconNames.filter((name) => !shown.has(name));
  const taken: (Point & { readonly reach: number })[] = icons.map(({ x, y }) => ({ x, y, reach: iconReach }));
  const place = (own: number, overlap: number): Point | null => {
    for (let i = 0; i < tries; i++) {
      const point = { x: random() * size.width, y: random() * size.height };
      if (taken.some((other) => areNear(other, point, other.reach + own - overlap))) continue;
      taken.push({ ...point, reach: own });
      return point;
    }
    return null;
  };
  let drawings = '';
  for (let i = 0; i < decoys; i++) {
    const own = between(random, 0.4, 0.55) * iconReach;
    const centre = place(own, 4);
    if (centre === null) continue;
    drawings += drawIcon(random, `m${i}`, {
      shape: shapes.get(oneOf(random, others))!,
      weight: oneOf(random, ['bold', 'fill']),
      finish: oneOf(random, style.finishes),
      palette: style.palette,
      centre,
      reach: own,
      degrees: random() * 360,
      bend: 6,
      tilt: style.tilt,
      isMirrored: true,
    });
  }
  for (let i = 0; i < pieces; i++) {
    const own = between(random, 0.35, 0.65) * iconReach;
    const centre = place(own, own * 0.6);
    if (centre === null) continue;
    const outline = shapes.get(oneOf(random, iconNames))![oneOf<IconWeight>(random, ['bold', 'fill'])];
    drawings += drawPiece(random, outline, centre, own);
  }
  return drawings;
}

const areNear = (a: Point, b: Point, distance: number): boolean =>
  (a.x - b.x) ** 2 + (a.y - b.y) ** 2 < distance ** 2;

/** A part of the outline of an icon: filled, or as a line. */
function drawPiece(random: CaptchaRandom, outline: Outline, centre: Point, reach: number): string {
  const bent = createBend(random, { degrees: random() * 360, height: 6, tilt: [0, 0] })(cut(random, outline));
  const path = formatOutline(bent, (10 * reach) / reachOf(bent));
  const paint =
    random() < 0.5
      ? `fill="${pickClutter(random)}" stroke="${pickClutter(random)}" stroke-width="30"`
      : `fill="none" stroke="${pickClutter(random)}" stroke-width="${Math.round(between(random, 25, 50))}"`;
  return `<path transform="translate(${Math.round(centre.x)} ${Math.round(centre.y)}) scale(.1)" d="${path}" ${paint} stroke-linejoin="round" opacity="${between(random, 0.6, 0.95).toFixed(2)}"/>`;
}

/** Keeps a third to a half of an outline's longest contour. */
function cut(random: CaptchaRandom, { coordinates, contours }: Outline): Outline {
  const longest = Math.max(...contours);
  const index = contours.indexOf(longest);
  const start = contours.slice(0, index).reduce((sum, length) => sum + length, 0);
  const curves = (longest - 2) / 6;
  const kept = Math.max(1, Math.round(curves * between(random, 0.33, 0.5)));
  const first = start + 6 * Math.floor(random() * (curves - kept + 1));
  const part = coordinates.slice(first, first + 2 + 6 * kept);
  return { coordinates: part, contours: [part.length] };
}
