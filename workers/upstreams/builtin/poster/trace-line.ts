import type { FontGlyph } from './poster-font.ts';

/** Returns the SVG path data of a line of glyphs whose baseline starts at a point. */
export function traceLine(
  glyphs: readonly FontGlyph[],
  size: number,
  left: number,
  baseline: number,
): string {
  let x = left;
  const paths: string[] = [];
  for (const glyph of glyphs) {
    paths.push(glyph.trace(size, x, baseline));
    x += glyph.advance * size;
  }
  return paths.join('');
}
