/** Far beyond any media type with its parameters; what comes after is not looked at for a head. */
const maxHeadLength = 200;
const head =
  /^data:([a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+)(?:;[a-z0-9!#$&^_.+-]+=[a-z0-9!#$&^_.+-]*)*;base64,/i;

export interface DataUri {
  /** What it is said to be: in lower case, without parameters. */
  readonly mediaType: string;
  /** Padded, in the standard alphabet, and nothing else. */
  readonly base64: string;
}

export function isDataUri(text: string): boolean {
  return text.slice(0, 5).toLowerCase() === 'data:';
}

/** What a base64 data URI is said to be; null for any other text. Its base64 is not looked at. */
export function readDataType(text: string): string | null {
  return head.exec(text.slice(0, maxHeadLength))?.[1]?.toLowerCase() ?? null;
}

/** A data URI with a media type that says it is base64, or null. Its base64 is not looked at: it may be anything. */
export function splitDataUri(text: string): DataUri | null {
  const match = head.exec(text.slice(0, maxHeadLength));
  return match === null ? null : { mediaType: match[1]!.toLowerCase(), base64: text.slice(match[0].length) };
}

/** A base64 data URI with a media type, or null where it is none or its base64 is not canonical. */
export function parseDataUri(text: string): DataUri | null {
  const split = splitDataUri(text);
  return split !== null && isCanonical(split.base64) ? split : null;
}

/** How many bytes canonical base64 stands for. */
export function countBase64Bytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

/** Node decodes whatever there is; what encodes to the same text again was all of it base64. Linear, unlike a regex. */
function isCanonical(base64: string): boolean {
  return base64.length % 4 === 0 && Buffer.from(base64, 'base64').toString('base64') === base64;
}
