import type { IncomingHttpHeaders } from 'node:http';

/** Values that distinguish one version of a body from another. */
export interface Validators {
  /** A strong ETag, including its quotes. */
  readonly etag: string;
  readonly lastModifiedMs: number;
}

/** `failed` is a 412, `unchanged` a 304. */
export type PreconditionResult = 'failed' | 'unchanged' | 'proceed';

/** Evaluates the preconditions of a GET or HEAD in the order of RFC 9110, 13.2.2, except If-Range. */
export function checkPreconditions(
  headers: IncomingHttpHeaders,
  { etag, lastModifiedMs }: Validators,
): PreconditionResult {
  // HTTP dates have a resolution of one second.
  const lastModified = Math.floor(lastModifiedMs / 1_000);
  const ifMatch = headers['if-match'];
  const unmodifiedSince = parseDate(headers['if-unmodified-since']);
  if (ifMatch !== undefined) {
    if (!listsETag(ifMatch, etag, 'strong')) return 'failed';
  } else if (unmodifiedSince !== null && lastModified > unmodifiedSince) return 'failed';
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch !== undefined) return listsETag(ifNoneMatch, etag, 'weak') ? 'unchanged' : 'proceed';
  const modifiedSince = parseDate(headers['if-modified-since']);
  return modifiedSince !== null && lastModified <= modifiedSince ? 'unchanged' : 'proceed';
}

/**
 * Whether a Range header applies. With If-Range, it applies only if the part of the body that the client already has is
 * of this version.
 */
export function isRangeCurrent(headers: IncomingHttpHeaders, { etag, lastModifiedMs }: Validators): boolean {
  const ifRange = headers['if-range'];
  if (ifRange === undefined) return true;
  const value = Array.isArray(ifRange) ? ifRange.join() : ifRange;
  return value === etag || parseDate(value) === Math.floor(lastModifiedMs / 1_000);
}

function listsETag(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  return list.split(',').some((item) => {
    const tag = item.trim();
    return tag === etag || (comparison === 'weak' && tag === `W/${etag}`);
  });
}

/**
 * Returns Unix time in seconds; null for an invalid HTTP date, which must be ignored. JavaScript accepts more formats
 * than HTTP.
 */
function parseDate(text: string | undefined): number | null {
  if (text === undefined || !/^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? null : Math.floor(ms / 1_000);
}
