import type { PosterFont, FontGlyph } from './poster-font.ts';

export interface TextBox {
  readonly width: number;
  readonly maxHeight: number;
  readonly minSize: number;
  readonly maxSize: number;
}

/** Text wrapped into lines of glyphs, at the largest size that fits. */
export interface FittedText {
  readonly size: number;
  readonly lineHeight: number;
  readonly lines: readonly (readonly FontGlyph[])[];
}

/** More than fits at the smallest size. Text beyond this is ignored. */
const MAX_CHARS = 1200;
const SPACE: FontGlyph = { advance: 0.25, trace: () => '' };
const LINE_HEIGHT = 1.22;
const SHRINK = 0.93;

/**
 * Fits a text into the first box that can hold it at one of the box's sizes. A text that is too long even for the last
 * box is cut there with an ellipsis.
 */
export function fitText(text: string, font: PosterFont, boxes: readonly TextBox[]): FittedText {
  const head = text.slice(0, MAX_CHARS);
  const isWhole = head.length === text.length;
  const words = head
    .split(/\s+/u)
    .map((word) => font.shapeWord(word))
    .filter((word) => word.length > 0);
  const longestWord = Math.max(0, ...words.map(measureGlyphs));
  let last: FittedText = { size: 0, lineHeight: 0, lines: [] };
  for (const { width, maxHeight, minSize, maxSize } of boxes) {
    for (let size = maxSize; size >= minSize; size *= SHRINK) {
      const lineHeight = size * LINE_HEIGHT;
      const maxLines = Math.floor(maxHeight / lineHeight);
      const lines = wrapWords(words, width / size);
      const isCut = lines.length > maxLines || !isWhole;
      if (!isCut && longestWord <= width / size) return { size, lineHeight, lines };
      const visibleLines = lines.slice(0, maxLines);
      if (isCut) addEllipsis(visibleLines, font, width / size);
      last = { size, lineHeight, lines: visibleLines };
    }
  }
  return last;
}

/** Wraps greedily; a word longer than a line continues on the next line. Widths are fractions of the font size. */
function wrapWords(words: readonly FontGlyph[][], width: number): FontGlyph[][] {
  const lines: FontGlyph[][] = [];
  let line: FontGlyph[] = [];
  let used = 0;
  for (const word of words) {
    const length = measureGlyphs(word);
    if (line.length > 0 && used + SPACE.advance + length > width) {
      lines.push(line);
      line = [];
      used = 0;
    }
    if (line.length > 0) {
      line.push(SPACE);
      used += SPACE.advance;
    }
    for (const glyph of word) {
      if (line.length > 0 && used + glyph.advance > width) {
        lines.push(line);
        line = [];
        used = 0;
      }
      line.push(glyph);
      used += glyph.advance;
    }
  }
  if (line.length > 0) lines.push(line);
  return lines;
}

function addEllipsis(lines: FontGlyph[][], font: PosterFont, width: number): void {
  const ellipsis = font.shapeWord('…');
  const last = [...(lines.pop() ?? [])];
  while (last.length > 0 && measureGlyphs(last) + measureGlyphs(ellipsis) > width) last.pop();
  lines.push([...last, ...ellipsis]);
}

function measureGlyphs(glyphs: readonly FontGlyph[]): number {
  return glyphs.reduce((sum, { advance }) => sum + advance, 0);
}
