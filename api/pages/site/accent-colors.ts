type Rgb = readonly [red: number, green: number, blue: number];

/** An operator's colour, changed as little as possible so that text in it, and on it, can be read. */
export interface AccentColors {
  /** For links and buttons. */
  readonly accent: string;
  /** For text on it. */
  readonly onAccent: string;
  /** A tint for backgrounds. */
  readonly tint: string;
}

/** WCAG 2, AA, for text of normal size, and a little more for rounding. */
const minContrast = 4.6;

const white: Rgb = [255, 255, 255];
const black: Rgb = [16, 20, 22];

/** The darkest background of the light theme, and the lightest of the dark theme, that accented text stands on. */
const backgrounds = {
  light: { surface: [243, 244, 243], toward: [0, 0, 0] },
  dark: { surface: [33, 38, 41], toward: [255, 255, 255] },
} as const satisfies Record<string, { surface: Rgb; toward: Rgb }>;

/** @param color `#rrggbb` */
export function deriveAccent(color: string, theme: 'light' | 'dark'): AccentColors {
  const { surface, toward } = backgrounds[theme];
  const rgb = readColor(color);
  const tintOf = (color: Rgb): Rgb => mix(surface, color, 0.1);
  const isReadable = (color: Rgb): boolean =>
    [surface, tintOf(color)].every((background) => contrastOf(color, background) >= minContrast);
  let accent = rgb;
  for (let share = 0; !isReadable(accent) && share < 1; share += 0.02) accent = mix(rgb, toward, share);
  const onAccent = contrastOf(white, accent) >= minContrast ? white : black;
  return {
    accent: writeColor(accent),
    onAccent: writeColor(onAccent),
    tint: writeColor(tintOf(accent)),
  };
}

export function contrastOf(one: Rgb, other: Rgb): number {
  const [high, low] = [luminanceOf(one), luminanceOf(other)].toSorted((a, b) => b - a);
  return (high! + 0.05) / (low! + 0.05);
}

/** @see https://www.w3.org/TR/WCAG22/#dfn-relative-luminance */
function luminanceOf(rgb: Rgb): number {
  const [red, green, blue] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

const mixOne = (from: number, to: number, share: number): number =>
  Math.round(from + (to - from) * Math.min(share, 1));

const mix = (from: Rgb, to: Rgb, share: number): Rgb => [
  mixOne(from[0], to[0], share),
  mixOne(from[1], to[1], share),
  mixOne(from[2], to[2], share),
];

export function readColor(color: string): Rgb {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
  return [red!, green!, blue!];
}

const writeColor = (rgb: Rgb): string =>
  `#${rgb.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
