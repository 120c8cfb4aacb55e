/** Far longer than any media type with its parameters. The head must end within this. */
const maxHeadLength = 200;
const head =
  /^data:([a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+)(?:;[a-z0-9!#$&^_.+-]+=[a-z0-9!#$&^_.+-]*)*;base64,/i;

export interface DataUri {
  /** The declared media type, in lower case and without parameters. */
  readonly mediaType: string;
  /** Padded, in the standard alphabet, without any other characters. */
  readonly base64: string;
}

export function isDataUri(text: string): boolean {
  return text.slice(0, 5).toLowerCase() === 'data:';
}

/** Returns the media type of a base64 data URI, or null for any other text. The base64 is not checked. */
export function readDataType(text: string): string | null {
  return head.exec(text.slice(0, maxHeadLength))?.[1]?.toLowerCase() ?? null;
}

/** Splits a base64 data URI with a media type, or returns null. The base64 is not checked. */
export function splitDataUri(text: string): DataUri | null {
  const match = head.exec(text.slice(0, maxHeadLength));
  return match === null ? null : { mediaType: match[1]!.toLowerCase(), base64: text.slice(match[0].length) };
}

/** Parses a base64 data URI with a media type. Returns null if it is not one or its base64 is not canonical. */
export function parseDataUri(text: string): DataUri | null {
  const split = splitDataUri(text);
  return split !== null && isCanonical(split.base64) ? split : null;
}

/** Returns the number of bytes that canonical base64 decodes to. */
export function countBase64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/**
 * Node skips invalid characters when decoding. Only canonical base64 encodes back to the same text. Linear, unlike a
 * regex.
 */
function isCanonical(base64: string): boolean {
  return base64.length % 4 === 0 && Buffer.from(base64, 'base64').toString('base64') === base64;
}
