import { invalidField } from '../../shared/contract/errors.ts';

/** Maximum time a request may wait for its work to start. */
export const maxRequestTimeoutMs = 24 * 60 * 60_000;
export const requestTimeoutHeader = 'X-Request-Timeout-Ms';

/** Far longer than any list of preferences that clients send. */
export const maxPreferLength = 1_024;

/**
 * Returns whether a `Prefer` header requests `respond-async` (RFC 7240, 2 and 4.1). Names are case-insensitive.
 * Parameters and unknown preferences are skipped, and so is `wait`. A malformed or too long header is ignored: a
 * preference must never cause an error.
 */
export function prefersAsync(header: string | undefined): boolean {
  if (header === undefined || header.length > maxPreferLength) return false;
  let isParameter = false;
  for (let at = 0; at < header.length; at++) {
    const end = findSeparator(header, at);
    if (!isParameter && isRespondAsync(header.slice(at, end))) return true;
    isParameter = header[end] === ';';
    at = end;
  }
  return false;
}

/**
 * Returns where the preference or parameter that begins at `from` ends: at a comma, a semicolon or the end. Quoted text
 * may contain both. Reads each character once.
 */
function findSeparator(header: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < header.length; at++) {
    const character = header[at];
    if (character === '"') isQuoted = !isQuoted;
    else if (isQuoted && character === '\\') at += 1;
    else if (!isQuoted && (character === ',' || character === ';')) return at;
  }
  return header.length;
}

/** RFC 7240 treats an empty value as no value. */
function isRespondAsync(preference: string): boolean {
  const equals = preference.indexOf('=');
  const name = equals < 0 ? preference : preference.slice(0, equals);
  const value = equals < 0 ? '' : preference.slice(equals + 1).trim();
  return name.trim().toLowerCase() === 'respond-async' && (value === '' || value === '""');
}

/**
 * Reads the request timeout in milliseconds. Returns null if the caller sets none.
 * @throws AppError `validation_failed`
 */
export function readRequestTimeout(header: string | undefined): number | null {
  if (header === undefined) return null;
  const text = header.trim();
  const timeoutMs = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (timeoutMs >= 1 && timeoutMs <= maxRequestTimeoutMs) return timeoutMs;
  throw invalidField(
    ['header', requestTimeoutHeader],
    `must be an integer number of milliseconds from 1 to ${maxRequestTimeoutMs}`,
  );
}
