import { createRequire } from 'node:module';

/** The parts of fontkit that are used. The package has no types. */
interface FontkitPath {
  scale(x: number, y: number): FontkitPath;
  translate(x: number, y: number): FontkitPath;
  toSVG(): string;
}

interface FontkitFont {
  readonly unitsPerEm: number;
  hasGlyphForCodePoint(codePoint: number): boolean;
  layout(text: string): {
    readonly glyphs: readonly { readonly path: FontkitPath }[];
    readonly positions: readonly {
      readonly xAdvance: number;
      readonly xOffset: number;
      readonly yOffset: number;
    }[];
  };
}

/** A drawn character. Lengths are fractions of the font size. */
export interface FontGlyph {
  readonly advance: number;
  /** Returns the SVG path data of the glyph at a size, with its origin (the left end of the baseline) at a point. */
  trace(size: number, x: number, y: number): string;
}

export interface PosterFont {
  /**
   * Returns the glyphs of one word. Letters and digits that are not in the font become boxes; other missing characters
   * (emoji, controls) are omitted.
   */
  shapeWord(word: string): FontGlyph[];
}

/** Manrope has one file per script. A character is drawn with the first file that contains it. */
const SCRIPTS = ['latin', 'cyrillic', 'latin-ext', 'cyrillic-ext', 'greek', 'vietnamese'];

let font: PosterFont | undefined;

/** Returns the process's font, which is loaded on first use. */
export function getPosterFont(): PosterFont {
  font ??= loadPosterFont();
  return font;
}

/** Reads the font files, 60 KB in total, from node_modules. */
export function loadPosterFont(): PosterFont {
  const require = createRequire(import.meta.url);
  const fontkit = require('fontkit') as { openSync(path: string): FontkitFont };
  const fonts = SCRIPTS.map((script) =>
    fontkit.openSync(require.resolve(`@fontsource/manrope/files/manrope-${script}-800-normal.woff`)),
  );

  return {
    shapeWord(word) {
      const glyphs: FontGlyph[] = [];
      let run = '';
      let runFont: FontkitFont | undefined;
      const endRun = (): void => {
        if (runFont !== undefined) glyphs.push(...shapeRun(runFont, run));
        run = '';
      };
      for (const character of word.normalize('NFC')) {
        const codePoint = character.codePointAt(0) ?? 0;
        const font = fonts.find((font) => font.hasGlyphForCodePoint(codePoint));
        if (font !== runFont) endRun();
        runFont = font;
        if (font !== undefined) run += character;
        else if (/[\p{L}\p{N}]/u.test(character)) glyphs.push(BOX);
      }
      endRun();
      return glyphs;
    },
  };
}

function shapeRun(font: FontkitFont, text: string): FontGlyph[] {
  const { glyphs, positions } = font.layout(text);
  const em = font.unitsPerEm;
  return glyphs.map(({ path }, index) => {
    const { xAdvance = 0, xOffset = 0, yOffset = 0 } = positions[index] ?? {};
    return {
      advance: xAdvance / em,
      trace(size, x, y) {
        const scale = size / em;
        return path
          .scale(scale, -scale)
          .translate(x + xOffset * scale, y - yOffset * scale)
          .toSVG();
      },
    };
  });
}

const BOX: FontGlyph = {
  advance: 0.7,
  trace(size, x, y) {
    const left = (x + size * 0.08).toFixed(1);
    const inner = (x + size * 0.15).toFixed(1);
    const long = (size * 0.54).toFixed(1);
    const short = (size * 0.4).toFixed(1);
    return (
      `M${left} ${y.toFixed(1)}h${long}v-${(size * 0.7).toFixed(1)}h-${long}Z` +
      `M${inner} ${(y - size * 0.07).toFixed(1)}v-${(size * 0.56).toFixed(1)}h${short}v${(size * 0.56).toFixed(1)}Z`
    );
  },
};
