import { isFirstHalf } from './surrogate-check.ts';

/** Enough to recognise what was sent; more of it would make the answer, and the log, as long as its sender likes. */
const defaultMaxLength = 200;

/** The text of a caller, or of a vendor, as messages and logs repeat it. */
export function shorten(text: string, maxLength = defaultMaxLength): string {
  if (text.length <= maxLength) return text;
  // Half of a pair of surrogates would not be a character.
  const end = isFirstHalf(text.charCodeAt(maxLength - 1)) ? maxLength - 1 : maxLength;
  return `${text.slice(0, end)}…`;
}
