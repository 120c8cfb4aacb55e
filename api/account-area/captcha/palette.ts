import { between, oneOf, type CaptchaRandom } from './captcha-random.ts';

/** In percent. */
type Range = readonly [min: number, max: number];

/** The colours of one image: a ground, and ink that people see on it. */
export interface Palette {
  readonly hue: number;
  /** How far hues of the ground differ from `hue`, in degrees. */
  readonly hueSpread: number;
  readonly saturation: Range;
  readonly ground: Range;
  /** Lightness of ink. A ground of medium lightness has both kinds. */
  readonly inks: readonly Ink[];
}

/** The lightness of an icon, and of the outline that separates it from what lies under it. */
export interface Ink {
  readonly fill: Range;
  readonly edge: Range;
}

const lightInk: Ink = { fill: [76, 97], edge: [4, 20] };
const darkInk: Ink = { fill: [8, 30], edge: [86, 98] };

const grounds: readonly Pick<Palette, 'ground' | 'inks'>[] = [
  { ground: [10, 36], inks: [lightInk] },
  { ground: [40, 64], inks: [lightInk, darkInk] },
  { ground: [68, 90], inks: [darkInk] },
];

const saturations: readonly Range[] = [
  [5, 25],
  [25, 60],
  [50, 90],
];

export function pickPalette(random: CaptchaRandom): Palette {
  return {
    ...oneOf(random, grounds),
    hue: randomHue(random),
    hueSpread: oneOf(random, [15, 45, 80, 180]),
    saturation: oneOf(random, saturations),
  };
}

export const randomHue = (random: CaptchaRandom): number => Math.floor(random() * 360);

export const formatColour = (hue: number, saturation: number, lightness: number): string =>
  `hsl(${Math.round(hue + 720) % 360},${Math.round(saturation)}%,${Math.round(lightness)}%)`;

const pickGroundHue = (random: CaptchaRandom, { hue, hueSpread }: Palette): number =>
  hue + between(random, -hueSpread, hueSpread);

export function pickGround(random: CaptchaRandom, palette: Palette): string {
  return formatColour(
    pickGroundHue(random, palette),
    between(random, ...palette.saturation),
    between(random, ...palette.ground),
  );
}

/** A colour as light or as dark as icons can be, whatever the ground. */
export function pickClutter(random: CaptchaRandom): string {
  const lightness = random() < 0.5 ? between(random, 72, 97) : between(random, 8, 34);
  return formatColour(randomHue(random), between(random, 30, 80), lightness);
}
