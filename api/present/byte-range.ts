/** Bytes of a body: from the first one to the one before the end. */
export interface ByteRange {
  readonly from: number;
  readonly end: number;
}

/** What a Range header asks for. The end of a range may be far behind that of the body. */
export type WantedRange = ByteRange | { readonly lastBytes: number };

const oneRange = /^bytes=[\t ]*(\d*)-(\d*)[\t ]*$/i;

/** Nothing in an object store is nearly as long, and stores ignore ranges whose numbers they find too long. */
const lastPlace = 10 ** 14;

const readPlace = (digits: string): number => Math.min(Number(digits), lastPlace);

/**
 * Reads a Range header. Null where the whole body is to be sent: HTTP says to ignore a header that is not well formed, and
 * allows it for several ranges at once, which almost no client asks for.
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

/** The bytes that are asked for of a body of this length; null where it has none of them. */
export function resolveRange(wanted: WantedRange, byteLength: number): ByteRange | null {
  const from = 'lastBytes' in wanted ? Math.max(0, byteLength - wanted.lastBytes) : wanted.from;
  const end = 'lastBytes' in wanted ? byteLength : Math.min(wanted.end, byteLength);
  return from < end ? { from, end } : null;
}

/** The Content-Range of a 206; without a range, that of a 416. */
export const formatContentRange = (range: ByteRange | null, byteLength: number): string =>
  `bytes ${range === null ? '*' : `${range.from}-${range.end - 1}`}/${byteLength}`;
