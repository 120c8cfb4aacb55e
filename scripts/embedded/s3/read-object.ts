import { S3Error } from './errors.ts';
import type { ObjectRecord } from './object-file.ts';
import { getQueryValue } from './parse-request.ts';
import type { S3Request } from './parse-request.ts';

/** Headers that S3 stores with an object and that a signed read may override with `response-…` parameters. */
export const overridableHeaders = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-type',
  'expires',
] as const;

export interface ByteRange {
  start: number;
  /** Inclusive. */
  end: number;
}

/**
 * Evaluates a conditional read in HTTP's order of conditions. Returns true if the client's copy is still valid (304).
 */
export function isNotModified(headers: ReadonlyMap<string, string>, record: ObjectRecord): boolean {
  // HTTP dates have whole seconds, so compare the object's time in whole seconds, as sent to the client.
  const modifiedSeconds = Math.floor(record.lastModifiedMs / 1000);
  const ifMatch = headers.get('if-match');
  const ifNoneMatch = headers.get('if-none-match');
  if (ifMatch !== undefined) {
    if (!matchesEtag(ifMatch, record.etag)) throw createPreconditionError('If-Match');
  } else {
    const unmodifiedSince = readDateSeconds(headers.get('if-unmodified-since'));
    if (unmodifiedSince !== undefined && modifiedSeconds > unmodifiedSince) {
      throw createPreconditionError('If-Unmodified-Since');
    }
  }
  if (ifNoneMatch !== undefined) return matchesEtag(ifNoneMatch, record.etag);
  const modifiedSince = readDateSeconds(headers.get('if-modified-since'));
  return modifiedSince !== undefined && modifiedSeconds <= modifiedSince;
}

export function createPreconditionError(condition: string): S3Error {
  return new S3Error('PreconditionFailed', { details: { Condition: condition } });
}

/**
 * Returns whether a list of entity tags, or `*`, contains this one. The list comes from a client and may be unquoted.
 */
export function matchesEtag(list: string, etag: string): boolean {
  return list.split(',').some((item) => {
    const tag = item.trim().replace(/^W\//, '').replaceAll('"', '');
    return tag === '*' || tag === etag;
  });
}

/**
 * Reads a Range header. Returns undefined if the whole object must be sent: for headers that must be ignored according
 * to HTTP, and for several ranges in one header, which S3 does not support.
 */
export function readRange(headers: ReadonlyMap<string, string>, record: ObjectRecord): ByteRange | undefined {
  const header = headers.get('range');
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  if (header === undefined || match === null || !isRangeRequested(headers, record)) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return undefined;
  const { size } = record;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  if (start >= size || end < start) {
    throw new S3Error('InvalidRange', {
      details: { RangeRequested: header, ActualObjectSize: String(size) },
      headers: { 'content-range': `bytes */${String(size)}` },
    });
  }
  return { start, end };
}

/** Returns the headers sent with an object's bytes, or with a 304. */
export function renderObjectHeaders(request: S3Request, record: ObjectRecord): Record<string, string> {
  const headers: Record<string, string> = {
    etag: `"${record.etag}"`,
    'last-modified': new Date(record.lastModifiedMs).toUTCString(),
    'accept-ranges': 'bytes',
    'content-type': 'binary/octet-stream',
  };
  for (const [name, value] of record.headers) headers[name] = value;
  for (const [name, value] of record.metadata) headers[`x-amz-meta-${name}`] = value;
  for (const name of overridableHeaders) {
    const override = getQueryValue(request, `response-${name}`);
    if (override !== undefined) headers[name] = checkHeaderValue(override);
  }
  return headers;
}

/**
 * Rejects characters that are not allowed in a header, in particular line breaks, which a link could use to forge
 * headers.
 */
export function checkHeaderValue(value: string): string {
  if (/^[\t\u{20}-\u{7e}\u{80}-\u{ff}]*$/u.test(value)) return value;
  throw new S3Error('InvalidArgument', {
    message: 'Header value cannot be represented using ISO-8859-1.',
    details: { ArgumentValue: value },
  });
}

function isRangeRequested(headers: ReadonlyMap<string, string>, record: ObjectRecord): boolean {
  const ifRange = headers.get('if-range');
  if (ifRange === undefined || ifRange === `"${record.etag}"`) return true;
  return readDateSeconds(ifRange) === Math.floor(record.lastModifiedMs / 1000);
}

function readDateSeconds(text: string | undefined): number | undefined {
  const ms = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : Math.floor(ms / 1000);
}
