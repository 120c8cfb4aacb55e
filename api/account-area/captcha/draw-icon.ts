import type { IconWeight } from './captcha-icons.ts';
import { between, oneOf, type CaptchaRandom } from './captcha-random.ts';
import { createBend } from './bend-outline.ts';
import { formatOutline, reachOf, type Outline } from './outline.ts';
import { formatColour, randomHue, type Palette } from './palette.ts';
import type { Point } from './place-icons.ts';
import type { Finish } from './style.ts';

export interface IconDrawing {
  readonly shape: Readonly<Record<IconWeight, Outline>>;
  /** Of the finishes that can have either. */
  readonly weight: IconWeight;
  readonly finish: Finish;
  readonly palette: Palette;
  readonly centre: Point;
  /** Maximum distance of the drawing from its centre, in pixels. */
  readonly reach: number;
  readonly degrees: number;
  /** How far points are displaced, in pixels of an icon 80 pixels wide. */
  readonly bend: number;
  readonly tilt: readonly [across: number, down: number];
  readonly isMirrored?: boolean;
}

/** The lines of the bold weight are too thin for the other finishes. */
const takesBothWeights: ReadonlySet<Finish> = new Set(['solid', 'shadowed']);

/** Paths have integer coordinates, in tenths of a pixel. */
const unit = 10;

/**
 * Draws one icon as SVG: stretched, sheared, rotated, bent and tilted. An outline separates it from what lies under it,
 * so that people see it on any background.
 * @param id of its definitions, unique in the image
 */
export function drawIcon(random: CaptchaRandom, id: string, drawing: IconDrawing): string {
  const { shape, weight, finish, centre, reach, degrees, bend, tilt, isMirrored = false } = drawing;
  const bendShape = createBend(random, { degrees, height: bend, tilt, isMirrored });
  const paint = pickPaint(random, drawing.palette);
  const outer = bendShape(shape[takesBothWeights.has(finish) ? weight : 'fill']);
  const inner = finish === 'duotone' ? bendShape(shape.bold) : outer;
  const margin = paint.edgeWidth / 2 + extraMargins[finish];
  const scale = (unit * (reach - margin)) / Math.max(reachOf(outer), reachOf(inner));
  const content = paintings[finish](random, { ...paint, id, inner: () => formatOutline(inner, scale) });
  return `<g transform="translate(${centre.x.toFixed(1)} ${centre.y.toFixed(1)}) scale(.1)" stroke-linejoin="round"><defs><path id="${id}p" d="${formatOutline(outer, scale)}"/></defs>${content}</g>`;
}

interface Paint {
  /** Colours with the lightness of the icon, and of its outline. */
  readonly tint: () => string;
  readonly edge: string;
  readonly edgeWidth: number;
}

interface Painting extends Paint {
  /** The path of the icon has this id with the suffix `p`. */
  readonly id: string;
  /** The path of the bold weight of a `duotone` icon. */
  readonly inner: () => string;
}

function pickPaint(random: CaptchaRandom, { inks }: Palette): Paint {
  const ink = oneOf(random, inks);
  const hue = randomHue(random);
  return {
    tint: () =>
      formatColour(hue + between(random, -50, 50), between(random, 45, 95), between(random, ...ink.fill)),
    edge: formatColour(randomHue(random), between(random, 20, 70), between(random, ...ink.edge)),
    edgeWidth: between(random, 3.5, 6),
  };
}

/** A colour that differs from both an icon and its outline, so that people see the icon as one shape. */
const pickMedium = (random: CaptchaRandom): string =>
  formatColour(randomHue(random), between(random, 30, 80), between(random, 42, 60));

/** Distance of a shadow, in pixels. */
const shadowOffset = 5;
const maxContourWidth = 3.4;

/** How far a finish extends beyond the outline around the icon, in pixels. */
const extraMargins: Readonly<Record<Finish, number>> = {
  solid: 0,
  contour: maxContourWidth / 2,
  dashed: maxContourWidth / 2,
  hatched: 0,
  dotted: 0,
  ringed: 0,
  shadowed: shadowOffset,
  duotone: 0,
};

const paintings: Readonly<Record<Finish, (random: CaptchaRandom, painting: Painting) => string>> = {
  solid: (random, painting) => {
    const rotation = Math.round(between(random, 0, 360));
    return `<linearGradient id="${painting.id}" gradientTransform="rotate(${rotation} .5 .5)"><stop stop-color="${painting.tint()}"/><stop offset="1" stop-color="${painting.tint()}"/></linearGradient>${drawFilled(painting, `url(#${painting.id})`)}`;
  },
  contour: (random, painting) => drawContour(random, painting, ''),
  dashed: (random, painting) => {
    const dash = Math.round(between(random, 90, 160));
    return drawContour(
      random,
      painting,
      ` stroke-dasharray="${dash} ${Math.round(between(random, 30, 45))}"`,
    );
  },
  hatched: (random, painting) => {
    const step = Math.round(between(random, 45, 90));
    const angle = random() * 2 * Math.PI;
    const [x, y] = [Math.round(step * Math.cos(angle)), Math.round(step * Math.sin(angle))];
    return `<linearGradient id="${painting.id}" gradientUnits="userSpaceOnUse" x2="${x}" y2="${y}" spreadMethod="repeat">${drawBands(random, painting)}</linearGradient>${drawLined(painting, `url(#${painting.id})`)}`;
  },
  ringed: (random, painting) => {
    const at = (): number => Math.round(between(random, -300, 300));
    return `<radialGradient id="${painting.id}" gradientUnits="userSpaceOnUse" cx="${at()}" cy="${at()}" r="${Math.round(between(random, 50, 110))}" spreadMethod="repeat">${drawBands(random, painting)}</radialGradient>${drawLined(painting, `url(#${painting.id})`)}`;
  },
  dotted: (random, painting) => {
    const step = Math.round(between(random, 55, 90));
    const radius = Math.round(step * between(random, 0.26, 0.4));
    const rotation = Math.round(between(random, 0, 90));
    return `<pattern id="${painting.id}" width="${step}" height="${step}" patternUnits="userSpaceOnUse" patternTransform="rotate(${rotation})"><rect width="${step}" height="${step}" fill="${painting.tint()}"/><circle cx="${step / 2}" cy="${step / 2}" r="${radius}" fill="${pickMedium(random)}"/></pattern>${drawLined(painting, `url(#${painting.id})`)}`;
  },
  shadowed: (random, painting) => {
    const angle = random() * 2 * Math.PI;
    const x = Math.round(unit * shadowOffset * Math.cos(angle));
    const y = Math.round(unit * shadowOffset * Math.sin(angle));
    const shadow = pickMedium(random);
    return `<use href="#${painting.id}p" x="${x}" y="${y}" fill="${shadow}" stroke="${shadow}" stroke-width="20"/>${drawFilled(painting, painting.tint())}`;
  },
  duotone: (random, painting) => {
    const fill = pickMedium(random);
    return `${drawFilled(painting, fill)}<path d="${painting.inner()}" fill="${painting.tint()}"/>`;
  },
};

/** The icon in one paint, with its outline around it. */
function drawFilled({ id, edge, edgeWidth }: Painting, fill: string): string {
  return `<use href="#${id}p" fill="${fill}" stroke="${edge}" stroke-width="${Math.round(edgeWidth * unit)}" paint-order="stroke"/>`;
}

/** The icon in a paint of several tints, which a line closes off. */
function drawLined(painting: Painting, fill: string): string {
  return `${drawFilled(painting, fill)}<use href="#${painting.id}p" fill="none" stroke="${painting.tint()}" stroke-width="18"/>`;
}

/** Only the line around the icon. */
function drawContour(random: CaptchaRandom, { id, edge, edgeWidth, tint }: Painting, dashes: string): string {
  const width = Math.round(unit * between(random, 2.2, maxContourWidth));
  return `<use href="#${id}p" fill="none" stroke="${edge}" stroke-width="${width + Math.round(edgeWidth * unit)}"/><use href="#${id}p" fill="none" stroke="${tint()}" stroke-width="${width}"${dashes}/>`;
}

/** The stops of a gradient that repeats: two tints with sharp limits. */
function drawBands(random: CaptchaRandom, { tint }: Painting): string {
  const limit = between(random, 0.4, 0.6).toFixed(2);
  const other = pickMedium(random);
  return `<stop stop-color="${tint()}"/><stop offset="${limit}" stop-color="${tint()}"/><stop offset="${limit}" stop-color="${other}"/><stop offset="1" stop-color="${other}"/>`;
}
