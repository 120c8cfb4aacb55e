/** A byte range of a body; `end` is exclusive. */
export interface ByteRange {
  readonly from: number;
  readonly end: number;
}

/** What a Range header asks for. The end of a range may be far past the end of the body. */
export type WantedRange = ByteRange | { readonly lastBytes: number };

const oneRange = /^bytes=[\t ]*(\d*)-(\d*)[\t ]*$/i;

/** No object is nearly this long, and object stores ignore ranges whose numbers they find too long. */
const lastPlace = 10 ** 14;

const readPlace = (digits: string): number => Math.min(Number(digits), lastPlace);

/**
 * Parses a Range header. Returns null if the whole body is to be sent: HTTP requires that for malformed headers, and
 * allows it for multiple ranges, which almost no client requests.
 */
export function parseRange(header: string): WantedRange | null {
  const match = oneRange.exec(header);
  if (match === null) return null;
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? null : { lastBytes: readPlace(last) };
  const from = readPlace(first);
  const end = last === '' ? Infinity : readPlace(last) + 1;
  return from < end ? { from, end } : null;
}

/** Resolves a range against a body's length; null if the body has none of its bytes. */
export function resolveRange(wanted: WantedRange, byteLength: number): ByteRange | null {
  const from = 'lastBytes' in wanted ? Math.max(0, byteLength - wanted.lastBytes) : wanted.from;
  const end = 'lastBytes' in wanted ? byteLength : Math.min(wanted.end, byteLength);
  return from < end ? { from, end } : null;
}

/** The Content-Range of a 206, or of a 416 without a range. */
export const formatContentRange = (range: ByteRange | null, byteLength: number): string =>
  `bytes ${range === null ? '*' : `${range.from}-${range.end - 1}`}/${byteLength}`;
