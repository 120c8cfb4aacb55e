import { between, someOf, type CaptchaRandom } from './captcha-random.ts';
import { pickGround, type Palette } from './palette.ts';
import type { Point, Size } from './place-icons.ts';
import type { Covering } from './style.ts';

export interface Covered {
  readonly size: Size;
  readonly palette: Palette;
  /** Centres of the icons. */
  readonly centres: readonly Point[];
  /** Radius of the icons, in pixels. */
  readonly reach: number;
}

/** What hides a part of each icon. */
export interface Covers {
  /** Drawn over the icons. */
  readonly over: string;
  /** A path around everything that is to remain of the icons; undefined if nothing is cut out. */
  readonly clip?: string;
}

export function drawCovers(random: CaptchaRandom, covering: Covering, covered: Covered): Covers {
  return drawings[covering](random, covered);
}

const drawings: Readonly<Record<Covering, (random: CaptchaRandom, covered: Covered) => Covers>> = {
  bars: (random, covered) => {
    const bars = pickPlaces(random, covered).map((place) =>
      drawBar(random, place, covered.reach, covered.palette),
    );
    return { over: bars.join('') };
  },
  blobs: (random, covered) => {
    const places = pickPlaces(random, covered);
    const blobs = [...places, ...places].map(
      (place) =>
        `<path d="${drawBlob(random, place, covered.reach)}" fill="${pickGround(random, covered.palette)}"/>`,
    );
    return { over: blobs.join('') };
  },
  gaps: (random, { size: { width, height }, centres, reach }) => {
    const holes = centres.map((place) => drawBlob(random, place, reach) + drawSlit(random, place, reach));
    return { over: '', clip: `M-9-9H${width + 9}V${height + 9}H-9Z${holes.join('')}` };
  },
};

/**
 * The icons, and as many other places, so that covers do not tell where icons are. In random order, because where two
 * covers overlap, the order shows.
 */
function pickPlaces(random: CaptchaRandom, { size: { width, height }, centres }: Covered): Point[] {
  const elsewhere = centres.map(() => ({ x: random() * width, y: random() * height }));
  return someOf(random, [...centres, ...elsewhere], 2 * centres.length);
}

/** A strip of the ground's colours across an icon, beside its centre. */
function drawBar(random: CaptchaRandom, centre: Point, reach: number, palette: Palette): string {
  const angle = random() * Math.PI;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const aside = between(random, -0.5, 0.5) * reach;
  const [x, y] = [centre.x - aside * sin, centre.y + aside * cos];
  const length = between(random, 1.1, 2) * reach;
  const bow = between(random, -0.5, 0.5) * reach;
  const at = (along: number, off: number): string =>
    `${Math.round(x + along * cos - off * sin)} ${Math.round(y + along * sin + off * cos)}`;
  const thickness = (between(random, 0.1, 0.2) * reach).toFixed(1);
  return `<path d="M${at(-length, 0)}Q${at(0, bow)} ${at(length, 0)}" fill="none" stroke="${pickGround(random, palette)}" stroke-width="${thickness}" stroke-linecap="round"/>`;
}

/** The path of a round shape that covers a tenth of an icon at most. */
function drawBlob(random: CaptchaRandom, centre: Point, reach: number): string {
  const angle = random() * 2 * Math.PI;
  const distance = between(random, 0.25, 0.8) * reach;
  const [rx, ry] = [between(random, 0.12, 0.25) * reach, between(random, 0.12, 0.25) * reach];
  const x = centre.x + distance * Math.cos(angle);
  const y = centre.y + distance * Math.sin(angle);
  const [a, b] = [rx.toFixed(1), ry.toFixed(1)];
  return `M${(x - rx).toFixed(1)} ${y.toFixed(1)}a${a} ${b} 0 1 0 ${(2 * rx).toFixed(1)} 0a${a} ${b} 0 1 0-${(2 * rx).toFixed(1)} 0Z`;
}

/** The path of a straight cut across an icon. */
function drawSlit(random: CaptchaRandom, centre: Point, reach: number): string {
  const angle = random() * Math.PI;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const aside = between(random, -0.5, 0.5) * reach;
  const half = between(random, 0.04, 0.075) * reach;
  const at = (along: number, off: number): string =>
    `${Math.round(centre.x + along * cos - off * sin)} ${Math.round(centre.y + along * sin + off * cos)}`;
  const end = 1.1 * reach;
  return `M${at(-end, aside - half)}L${at(end, aside - half)}L${at(end, aside + half)}L${at(-end, aside + half)}Z`;
}
