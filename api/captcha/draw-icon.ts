import { iconUnits } from './captcha-icons.ts';
import { between, type Random } from './captcha-random.ts';
import { randomHue, formatColour } from './draw-background.ts';
import { formatOutline, reachOf, type Outline } from './outline.ts';
import type { Point } from './place-icons.ts';

export interface IconDrawing {
  readonly outline: Outline;
  readonly centre: Point;
  /** Maximum distance of the drawing from its centre, in pixels. */
  readonly reach: number;
  readonly degrees: number;
  /** How far points are displaced, in pixels of an icon 80 pixels wide. */
  readonly bend: number;
}

/**
 * Draws one icon as SVG: stretched, sheared, rotated and distorted. It is light with a dark outline, or dark with a
 * light one, so that people see it on any background. Its tint changes from one side to the other.
 * @param id of its gradient, unique in the image
 */
export function drawIcon(
  random: Random,
  id: string,
  { outline, centre, reach, degrees, bend }: IconDrawing,
): string {
  const isLight = random() < 0.5;
  const hue = randomHue(random);
  const randomTint = (): string =>
    formatColour(
      hue + between(random, -50, 50),
      between(random, 45, 95),
      isLight ? between(random, 78, 97) : between(random, 8, 30),
    );
  const edge = formatColour(
    randomHue(random),
    between(random, 30, 70),
    isLight ? between(random, 5, 22) : between(random, 84, 97),
  );
  const strokeWidth = between(random, 3.5, 6);
  const bent = bendOutline(random, outline, degrees, bend);
  const path = formatOutline(bent, (10 * (reach - strokeWidth / 2)) / reachOf(bent));
  const rotation = Math.round(between(random, 0, 360));
  return `<linearGradient id="${id}" gradientTransform="rotate(${rotation} .5 .5)"><stop stop-color="${randomTint()}"/><stop offset="1" stop-color="${randomTint()}"/></linearGradient><path transform="translate(${centre.x.toFixed(1)} ${centre.y.toFixed(1)}) scale(.1)" d="${path}" fill="url(#${id})" stroke="${edge}" stroke-width="${Math.round(strokeWidth * 10)}" stroke-linejoin="round" paint-order="stroke"/>`;
}

/** Side of the icon's square while the icon is distorted. The distorted icon is then scaled to `reach`. */
const side = 80;

/** Distorts around the centre of the icon's square, which becomes (0, 0). */
function bendOutline(
  random: Random,
  { coordinates, contours }: Outline,
  degrees: number,
  bend: number,
): Outline {
  const stretch = between(random, 0.82, 1.22);
  const shear = between(random, -0.28, 0.28);
  const cos = Math.cos((degrees * Math.PI) / 180);
  const sin = Math.sin((degrees * Math.PI) / 180);
  const across = createWave(random, bend);
  const down = createWave(random, bend);
  const bent = new Float64Array(coordinates.length);
  for (let i = 0; i < bent.length; i += 2) {
    const v = ((coordinates[i + 1]! / iconUnits - 0.5) * side) / stretch;
    const u = (coordinates[i]! / iconUnits - 0.5) * side * stretch + shear * v;
    const x = u * cos - v * sin;
    const y = u * sin + v * cos;
    bent[i] = x + across(x, y);
    bent[i + 1] = y + down(x, y);
  }
  return { coordinates: bent, contours };
}

/** Creates a wave in a random direction, about as long as an icon. */
function createWave(random: Random, height: number): (x: number, y: number) => number {
  const direction = random() * 2 * Math.PI;
  const frequency = (2 * Math.PI) / between(random, 50, 95);
  const kx = Math.cos(direction) * frequency;
  const ky = Math.sin(direction) * frequency;
  const phase = random() * 2 * Math.PI;
  return (x, y) => height * Math.sin(kx * x + ky * y + phase);
}
