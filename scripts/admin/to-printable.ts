import { shorten } from '../../shared/runtime/shorten.ts';

/**
 * What moves the cursor of a terminal, clears it, sets its title or turns the direction of a line: control characters, those
 * that are not seen, and the separators of lines. Error messages of vendors may hold any of them.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** A text in which nothing can act upon a terminal, and which is one line. In JSON it stays the same value. */
export function toPrintable(text: string): string {
  return text.replaceAll(unprintable, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** A word of the command line, as messages repeat it. */
export const quote = (given: string): string => `"${toPrintable(shorten(given, 100))}"`;
