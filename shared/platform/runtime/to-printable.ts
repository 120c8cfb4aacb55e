import { shorten } from './shorten.ts';

/**
 * Characters that move a terminal's cursor, clear the screen, set its title or change the text direction: control
 * characters, invisible characters, and line separators. Vendors' error messages may contain any of them.
 */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns the text as one line that cannot affect a terminal. In JSON it remains the same value. */
export function toPrintable(text: string): string {
  return text.replaceAll(unprintable, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** Quotes a word of the command line for messages. */
export const quote = (given: string): string => `"${toPrintable(shorten(given, 100))}"`;
