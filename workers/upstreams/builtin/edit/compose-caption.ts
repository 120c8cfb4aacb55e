import { fitText } from '../poster/fit-text.ts';
import type { PosterFont } from '../poster/poster-font.ts';
import { traceLine } from '../poster/trace-line.ts';

const ink = '#14213d';
const paper = '#fdfaf3';
/** Smaller characters are unreadable. */
const minCharacterPixels = 9;

/**
 * Composes a caption for an image of this size, as SVG: a dark band along the bottom with the text on it as paths.
 */
export function composeCaption(text: string, width: number, height: number, font: PosterFont): string {
  const padding = Math.max(2, Math.round(Math.min(width, height) * 0.04));
  const maxHeight = Math.max(1, height * 0.45 - 2 * padding);
  const maxSize = Math.max(minCharacterPixels, Math.min(height * 0.12, width * 0.1));
  const fitted = fitText(text, font, [
    { width: Math.max(1, width - 2 * padding), maxHeight, minSize: minCharacterPixels, maxSize },
  ]);
  const bandHeight = Math.min(height, Math.ceil(fitted.lines.length * fitted.lineHeight) + 2 * padding);
  const top = height - bandHeight;
  const paths = fitted.lines.map((line, row) =>
    traceLine(line, fitted.size, padding, top + padding + fitted.size * 0.9 + row * fitted.lineHeight),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">`,
    `<rect x="0" y="${top}" width="${width}" height="${bandHeight}" fill="${ink}"/>`,
    `<path d="${paths.join('')}" fill="${paper}"/>`,
    '</svg>',
  ].join('');
}
