import { BACKDROPS, CANVAS } from './backdrops.ts';
import { fitText, type FittedText } from './fit-text.ts';
import { choosePalette, type PosterPalette } from './palettes.ts';
import type { PosterFont } from './poster-font.ts';
import { createRandom } from './seeded-random.ts';
import { traceLine } from './trace-line.ts';

export interface PosterSpec {
  readonly prompt: string;
  /** Not interpreted; any text only changes the image. */
  readonly negativePrompt: string | null;
  /** `vivid` and `natural` determine the colours. Any other style only changes the image. */
  readonly style: string | null;
  /** The index of the image within the call. Each image has a different backdrop. */
  readonly index: number;
  /** Pixels per side. */
  readonly size: number;
}

const MARGIN = 48;
const PADDING = 52;
const SIGNATURE = { text: 'demo-svg-image', size: 25 };
const CARD_WIDTH = CANVAS - 2 * MARGIN;
/** Smaller characters are unreadable. */
const MIN_CHARACTER_PIXELS = 11;

/**
 * Composes a poster of a prompt as SVG: a backdrop with a card that shows the prompt's text, all as paths. The same
 * spec always gives the same image.
 */
export function composePoster(spec: PosterSpec, font: PosterFont): string {
  const { prompt, negativePrompt, style, index, size } = spec;
  const seed = [prompt, negativePrompt ?? '', style ?? ''];
  const firstBackdrop = Math.floor(createRandom(...seed)() * BACKDROPS.length);
  const random = createRandom(...seed, String(index));
  const palette = choosePalette(random, style);
  const width = CARD_WIDTH - 2 * PADDING;
  const text = fitText(prompt, font, [
    // Leave half of the image for the backdrop, unless the text is too long.
    { width, maxHeight: 360, minSize: 56, maxSize: 124 },
    {
      width,
      maxHeight: CANVAS - 2 * MARGIN - 2 * PADDING - 2 * SIGNATURE.size,
      minSize: Math.max(26, (MIN_CHARACTER_PIXELS * CANVAS) / size),
      maxSize: 56,
    },
  ]);
  const cardHeight = text.lines.length * text.lineHeight + 2 * SIGNATURE.size + 2 * PADDING;
  const cardTop = CANVAS - MARGIN - cardHeight;
  const backdrop = BACKDROPS[(firstBackdrop + index) % BACKDROPS.length] ?? BACKDROPS[0];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}" viewBox="0 0 ${CANVAS} ${CANVAS}">`,
    backdrop.draw(random, palette, Math.max(cardTop, CANVAS / 4)),
    drawCard(text, cardTop, !backdrop.isDark && random() < 0.5, palette, font),
    '</svg>',
  ].join('');
}

function drawCard(
  text: FittedText,
  top: number,
  isDark: boolean,
  palette: PosterPalette,
  font: PosterFont,
): string {
  const background = isDark ? palette.ink : palette.paper;
  const color = isDark ? palette.paper : palette.ink;
  const left = MARGIN + PADDING;
  const firstBaseline = top + PADDING + text.size * 0.86;
  const lines = text.lines.map((line, row) =>
    traceLine(line, text.size, left, firstBaseline + row * text.lineHeight),
  );
  const footBaseline = CANVAS - MARGIN - PADDING + SIGNATURE.size * 0.1;
  const signature = traceLine(font.shapeWord(SIGNATURE.text), SIGNATURE.size, left + 62, footBaseline);
  const swatches = palette.accents.map(
    (accent, index) =>
      `<circle cx="${CANVAS - left - 12 - index * 34}" cy="${footBaseline - 9}" r="11" fill="${accent}"/>`,
  );
  return [
    `<rect x="${MARGIN}" y="${top.toFixed(1)}" width="${CARD_WIDTH}" height="${(CANVAS - MARGIN - top).toFixed(1)}" rx="34" fill="${background}"/>`,
    `<path d="${lines.join('')}" fill="${color}"/>`,
    `<rect x="${left}" y="${footBaseline - 12}" width="44" height="6" rx="3" fill="${palette.accents[0]}"/>`,
    `<path d="${signature}" fill="${color}" opacity="0.72"/>`,
    ...swatches,
  ].join('');
}
