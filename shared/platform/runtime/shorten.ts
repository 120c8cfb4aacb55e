import { isFirstHalf } from './surrogate-check.ts';

/** Enough to recognise the text. Without a limit, senders would determine the length of our responses and log lines. */
const defaultMaxLength = 200;

/** Shortens text from a caller or a vendor for use in messages and logs. */
export function shorten(text: string, maxLength = defaultMaxLength): string {
  if (text.length <= maxLength) return text;
  // Do not split a surrogate pair.
  const end = isFirstHalf(text.charCodeAt(maxLength - 1)) ? maxLength - 1 : maxLength;
  return `${text.slice(0, end)}…`;
}
