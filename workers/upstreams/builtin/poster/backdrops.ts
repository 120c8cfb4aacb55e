import { mixColors, type PosterPalette } from './palettes.ts';
import { pickBetween, pickOne, type Random } from './seeded-random.ts';

/** The side of the drawing area, in units that do not depend on the size in pixels. */
export const CANVAS = 1000;

export interface PosterBackdrop {
  /**
   * Draws SVG over the whole canvas. `height` is the part that stays visible, measured from the top. The SVG contains
   * only our own numbers and colours, never a caller's text.
   */
  draw(random: Random, palette: PosterPalette, height: number): string;
  /** Whether it needs a light card, because a dark one would not stand out. */
  readonly isDark: boolean;
}

/** Ordered so that neighbours clearly differ, because the images of one call have consecutive backdrops. */
export const BACKDROPS: readonly [PosterBackdrop, ...PosterBackdrop[]] = [
  { draw: drawHills, isDark: false },
  { draw: drawTiles, isDark: false },
  { draw: drawOrbits, isDark: true },
  { draw: drawCurrents, isDark: false },
];

function drawHills(random: Random, { ink, paper, accents }: PosterPalette, height: number): string {
  const [sky, sun, near, far] = accents;
  const sunX = pickBetween(random, 250, 750);
  const sunY = height * pickBetween(random, 0.34, 0.46);
  const radius = Math.max(60, Math.min(190, height * 0.3));
  const parts = [
    fillWithGradient([mixColors(sky, paper, 0.15), mixColors(sky, paper, 0.85)], 90),
    ...[2.1, 1.55].map((factor) => drawCircle(sunX, sunY, radius * factor, sun, 0.16)),
    drawCircle(sunX, sunY, radius, sun),
  ];
  for (let bird = 0; bird < 5; bird++) {
    const x = pickBetween(random, 80, 900);
    const y = pickBetween(random, 0.06, 0.3) * height;
    const wing = pickBetween(random, 9, 17);
    parts.push(
      `<path d="M${round(x - wing)} ${round(y - wing / 2)}Q${round(x - wing / 3)} ${round(y - wing)} ${round(x)} ${round(y)}` +
        `Q${round(x + wing / 3)} ${round(y - wing)} ${round(x + wing)} ${round(y - wing / 2)}" fill="none"` +
        ` stroke="${ink}" stroke-width="3" stroke-linecap="round"/>`,
    );
  }
  const layers = 5;
  for (let layer = 0; layer < layers; layer++) {
    const depth = layer / (layers - 1);
    const base = height * (0.52 + 0.42 * depth);
    const color = mixColors(
      mixColors(far, near, depth),
      depth < 0.5 ? paper : ink,
      Math.abs(depth - 0.45) * 0.75,
    );
    parts.push(`<path d="${traceRidge(random, base, height * 0.11)}" fill="${color}"/>`);
  }
  return parts.join('');
}

function traceRidge(random: Random, base: number, swing: number): string {
  const phase = pickBetween(random, 0, 2 * Math.PI);
  const wave = pickBetween(random, 150, 260);
  const rise = (x: number): number =>
    base + swing * Math.sin(phase + x / wave) + swing * 0.4 * Math.sin(2.7 * phase + x / 90);
  const points = [`M0 ${CANVAS}L0 ${round(rise(0))}`];
  for (let x = 30; x <= CANVAS + 30; x += 30) points.push(`L${round(x)} ${round(rise(x))}`);
  return `${points.join('')}L${CANVAS + 30} ${CANVAS}Z`;
}

function drawTiles(random: Random, { ink, paper, accents }: PosterPalette): string {
  const side = CANVAS / pickOne(random, [4, 5]);
  const colors: [string, ...string[]] = [...accents, ink, paper];
  const parts: string[] = [];
  for (let y = 0; y < CANVAS; y += side) {
    for (let x = 0; x < CANVAS; x += side) {
      const ground = pickOne(random, colors);
      const others = colors.filter((color) => color !== ground) as [string, ...string[]];
      const turn = Math.floor(random() * 4) * 90;
      const shape = drawTile(Math.floor(random() * 7), pickOne(random, others), ground);
      parts.push(
        `<g transform="translate(${round(x)} ${round(y)}) scale(${round(side / 100, 4)})">`,
        `<rect width="100.5" height="100.5" fill="${ground}"/>`,
        `<g transform="rotate(${turn} 50 50)">${shape}</g></g>`,
      );
    }
  }
  return parts.join('');
}

/** Draws one of seven figures on a square of 100. */
function drawTile(kind: number, color: string, ground: string): string {
  switch (kind) {
    case 0:
      return `<path d="M0 0H100A100 100 0 0 1 0 100Z" fill="${color}"/>`;
    case 1:
      return `<path d="M0 50A50 50 0 0 1 100 50Z" fill="${color}"/><path d="M0 100A50 50 0 0 1 100 100Z" fill="${color}"/>`;
    case 2:
      return drawCircle(50, 50, 38, color) + drawCircle(50, 50, 15, ground);
    case 3:
      return `<path d="M0 0H100L0 100Z" fill="${color}"/>`;
    case 4:
      return [20, 50, 80].flatMap((y) => [20, 50, 80].map((x) => drawCircle(x, y, 8, color))).join('');
    case 5:
      return `<path d="M0 0H50A50 50 0 0 1 50 100H0Z" fill="${color}"/>`;
    default:
      return [10, 35, 60, 85]
        .map((y) => `<rect y="${y - 5}" width="100" height="12.5" fill="${color}"/>`)
        .join('');
  }
}

function drawOrbits(random: Random, { ink, paper, accents }: PosterPalette, height: number): string {
  const x = pickBetween(random, 380, 620);
  const y = height * pickBetween(random, 0.45, 0.55);
  const parts = [fillWithGradient([mixColors(ink, accents[0], 0.1), mixColors(ink, accents[1], 0.42)], 60)];
  for (let star = 0; star < 90; star++) {
    const at = [pickBetween(random, 0, CANVAS), pickBetween(random, 0, CANVAS)] as const;
    parts.push(drawCircle(...at, pickBetween(random, 0.8, 2.6), paper, pickBetween(random, 0.25, 0.9)));
  }
  const core = Math.max(45, height * 0.12);
  parts.push(drawCircle(x, y, core * 1.9, accents[2], 0.14), drawCircle(x, y, core * 1.4, accents[2], 0.22));
  parts.push(
    drawCircle(x, y, core, accents[2]),
    drawCircle(x - core * 0.3, y - core * 0.3, core * 0.5, paper, 0.22),
  );
  const rings = 5;
  for (let ring = 0; ring < rings; ring++) {
    const radius = core * 1.9 + (ring + 0.6) * Math.max(42, height * 0.105);
    parts.push(
      `<circle cx="${round(x)}" cy="${round(y)}" r="${round(radius)}" fill="none" stroke="${paper}" stroke-width="2" opacity="0.38"/>`,
    );
    const angle = pickBetween(random, Math.PI * 0.95, Math.PI * 2.05);
    const planet = pickBetween(random, 11, 34);
    const planetX = x + radius * Math.cos(angle);
    const planetY = y + radius * 0.999 * Math.sin(angle);
    const color = accents[(ring + 3) % accents.length] ?? paper;
    parts.push(drawCircle(planetX, planetY, planet, color));
    parts.push(drawCircle(planetX - planet * 0.28, planetY - planet * 0.28, planet * 0.42, paper, 0.35));
  }
  return parts.join('');
}

function drawCurrents(random: Random, { ink, paper, accents }: PosterPalette, height: number): string {
  const parts = [
    fillWithGradient([accents[0], mixColors(accents[1], ink, 0.25)], pickBetween(random, 20, 70)),
  ];
  for (let glow = 0; glow < 6; glow++) {
    const color = accents[glow % accents.length] ?? paper;
    const id = `glow${glow}`;
    parts.push(
      `<defs><radialGradient id="${id}"><stop offset="0" stop-color="${color}"/>` +
        `<stop offset="1" stop-color="${color}" stop-opacity="0"/></radialGradient></defs>`,
      drawCircle(
        pickBetween(random, 0, CANVAS),
        pickBetween(random, 0, CANVAS),
        pickBetween(random, 260, 520),
        `url(#${id})`,
        0.9,
      ),
    );
  }
  const phase = pickBetween(random, 0, 6);
  const wave = pickBetween(random, 170, 260);
  const lines = 26;
  for (let line = 0; line < lines; line++) {
    const share = line / (lines - 1);
    const points: string[] = [];
    for (let x = -20; x <= CANVAS + 20; x += 20) {
      const swell = Math.sin(x / wave + phase + share * 2.2) * (0.12 + 0.16 * Math.sin(x / 330 + phase));
      points.push(`${round(x)} ${round(height * (0.12 + share * 0.8 + swell * (0.5 + share)))}`);
    }
    parts.push(
      `<path d="M${points.join('L')}" fill="none" stroke="${paper}" stroke-width="${round(1.5 + 2.5 * share)}" opacity="${round(0.25 + 0.5 * share, 2)}"/>`,
    );
  }
  return parts.join('');
}

function fillWithGradient(colors: readonly [string, string], degrees: number): string {
  const [from, to] = colors;
  return (
    `<defs><linearGradient id="ground" gradientTransform="rotate(${round(degrees)} 0.5 0.5)">` +
    `<stop offset="0" stop-color="${from}"/><stop offset="1" stop-color="${to}"/></linearGradient></defs>` +
    `<rect width="${CANVAS}" height="${CANVAS}" fill="url(#ground)"/>`
  );
}

function drawCircle(x: number, y: number, radius: number, fill: string, opacity = 1): string {
  return `<circle cx="${round(x)}" cy="${round(y)}" r="${round(radius)}" fill="${fill}" opacity="${round(opacity, 2)}"/>`;
}

function round(value: number, digits = 1): string {
  return String(Number(value.toFixed(digits)));
}
