/** A byte range of a body; `end` is exclusive. */
export interface ByteRange {
  readonly from: number;
  readonly end: number;
}

/** The range that a Range header requests. Its end may be far past the end of the body. */
export type RequestedRange = ByteRange | { readonly lastBytes: number };

const oneRange = /^bytes=[\t ]*(\d*)-(\d*)[\t ]*$/i;

/** No object is nearly this long, and object stores ignore ranges with larger numbers. */
const maxOffset = 10 ** 14;

const readOffset = (digits: string): number => Math.min(Number(digits), maxOffset);

/**
 * Parses a Range header. Returns null if the whole body is to be sent: HTTP requires that for malformed headers, and
 * allows it for multiple ranges, which almost no client requests.
 */
export function parseRange(header: string): RequestedRange | null {
  const match = oneRange.exec(header);
  if (match === null) return null;
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? null : { lastBytes: readOffset(last) };
  const from = readOffset(first);
  const end = last === '' ? Infinity : readOffset(last) + 1;
  return from < end ? { from, end } : null;
}

/** Resolves a range against a body's length; null if the range is past the end of the body. */
export function resolveRange(requested: RequestedRange, byteLength: number): ByteRange | null {
  const from = 'lastBytes' in requested ? Math.max(0, byteLength - requested.lastBytes) : requested.from;
  const end = 'lastBytes' in requested ? byteLength : Math.min(requested.end, byteLength);
  return from < end ? { from, end } : null;
}

/** The Content-Range of a 206, or of a 416 without a range. */
export const formatContentRange = (range: ByteRange | null, byteLength: number): string =>
  `bytes ${range === null ? '*' : `${range.from}-${range.end - 1}`}/${byteLength}`;
