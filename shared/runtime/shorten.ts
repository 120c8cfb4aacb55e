import { isFirstHalf } from './surrogate-check.ts';

/**
 * Enough to recognise what was sent. Without a limit, senders would decide how long our responses and log lines are.
 */
const defaultMaxLength = 200;

/** Shortens text from a caller or a vendor for use in messages and logs. */
export function shorten(text: string, maxLength = defaultMaxLength): string {
  if (text.length <= maxLength) return text;
  // Never cut a surrogate pair in half.
  const end = isFirstHalf(text.charCodeAt(maxLength - 1)) ? maxLength - 1 : maxLength;
  return `${text.slice(0, end)}…`;
}
