import type { PictureGlyph } from './picture-font.ts';

/** SVG path data of a line of glyphs that begins at a place of its base line. */
export function traceLine(
  glyphs: readonly PictureGlyph[],
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
