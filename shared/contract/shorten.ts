/** Enough to recognise what was sent; more of it would make the answer, and the log, as long as its caller likes. */
const maxEchoedLength = 200;

/** A caller's text as messages and logs repeat it. */
export function shorten(text: string): string {
  if (text.length <= maxEchoedLength) return text;
  // Half of a pair of surrogates would not be a character.
  const end = isHighSurrogate(text.charCodeAt(maxEchoedLength - 1)) ? maxEchoedLength - 1 : maxEchoedLength;
  return `${text.slice(0, end)}…`;
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
