/** Without marks that change the direction of a text, which may hide what an address is. */
const mark = /[\s\p{Z}\u00ad\u180e\u200b-\u200f\u2060\ufeff]/u;
/** White space, invisible characters such as zero-width spaces and soft hyphens, and dashes of any kind. */
const betweenCharacters = /[\s\p{Z}\p{Cf}\p{Pd}\u2212]/gu;

/** Returns a text without what copying from a mail or a chat adds at either end. */
export function trimTyped(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && mark.test(text[start]!)) start += 1;
  while (end > start && mark.test(text[end - 1]!)) end -= 1;
  return text.slice(start, end);
}

/**
 * Returns the letters and digits of a code, however it was copied or typed: without white space, invisible characters
 * and dashes of any kind, and with ordinary characters in place of full-width ones.
 */
export const readTypedCode = (text: string): string =>
  text.normalize('NFKC').replaceAll(betweenCharacters, '');

const cyrillic = 'АВЕКМНРСТУХ';
const latin = 'ABEKMHPCTYX';

/** Replaces Cyrillic letters by the Latin ones that look the same. The text is in upper case. */
export const toLatinLookalikes = (text: string): string =>
  text.replaceAll(/[АВЕКМНРСТУХ]/g, (letter) => latin[cyrillic.indexOf(letter)]!);
