import { between, oneOf, type CaptchaRandom } from './captcha-random.ts';
import { repeat } from './draw-backdrop.ts';
import { formatColour, pickClutter, randomHue } from './palette.ts';
import type { Size } from './place-icons.ts';
import type { Clutter } from './style.ts';

/**
 * Draws marks with the line widths and contrasts of icons, so that the edges of icons are not the strongest ones. They
 * lie under the icons.
 */
export function drawClutter(random: CaptchaRandom, clutter: Clutter, size: Size, count: number): string {
  return repeat(count, () => {
    const x = random() * size.width;
    const y = random() * size.height;
    const opacity = between(random, 0.5, 0.85).toFixed(2);
    return drawings[clutter](random, Math.round(x), Math.round(y), `opacity="${opacity}"`);
  });
}

type DrawMark = (random: CaptchaRandom, x: number, y: number, opacity: string) => string;

const drawings: Readonly<Record<Clutter, DrawMark>> = {
  scribbles: (random, x, y, opacity) => {
    const reach = between(random, 12, 40);
    const at = nearBy(random, x, y, reach);
    return `<path d="M${at()}Q${at()} ${at()}T${at()}" ${drawLine(random)} ${opacity}/>`;
  },
  shards: (random, x, y, opacity) => {
    const at = nearBy(random, x, y, between(random, 7, 20));
    return `<path d="M${at()}L${at()}Q${at()} ${at()}Z" fill="${pickClutter(random)}" ${opacity}/>`;
  },
  rods: (random, x, y, opacity) => {
    const at = nearBy(random, x, y, between(random, 10, 30));
    return `<path d="M${at()}L${at()}L${at()}" ${drawLine(random)} ${opacity}/>`;
  },
};

const nearBy = (random: CaptchaRandom, x: number, y: number, reach: number) => (): string =>
  `${Math.round(x + between(random, -reach, reach))} ${Math.round(y + between(random, -reach, reach))}`;

const drawLine = (random: CaptchaRandom): string =>
  `fill="none" stroke="${pickClutter(random)}" stroke-width="${between(random, 2, 5).toFixed(1)}" stroke-linecap="round"`;

/** Fine lines over everything. They split icons into pieces for programs, but do not hide anything from people. */
export function drawScratches(random: CaptchaRandom, { width, height }: Size, count: number): string {
  return repeat(count, () => {
    const tint = formatColour(randomHue(random), 60, oneOf(random, [12, 92]));
    const y = (): number => Math.round(random() * height);
    return `<path d="M-5 ${y()}C${Math.round(width * 0.3)} ${y()} ${Math.round(width * 0.7)} ${y()} ${width + 5} ${y()}" fill="none" stroke="${tint}" stroke-width="${between(random, 1, 2).toFixed(1)}" opacity=".6"/>`;
  });
}
