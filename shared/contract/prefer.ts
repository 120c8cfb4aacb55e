import { invalidField } from './errors.ts';

/** Maximum time a request may wait for its work to start. */
export const maxRequestTimeoutMs = 24 * 60 * 60_000;
export const requestTimeoutHeader = 'X-Request-Timeout-Ms';

/** One preference of a list: a token, a value that may be quoted, and parameters. Quoted text may contain commas. */
const preference = /(?:[^",;]|"(?:[^"\\]|\\.)*(?:"|$))+|[,;]/g;

/**
 * Returns whether a `Prefer` header requests `respond-async` (RFC 7240, 2 and 4.1). Names are case-insensitive.
 * Parameters and unknown preferences are skipped, and so is `wait`. A malformed header is ignored, because servers may
 * ignore a preference.
 */
export function prefersAsync(header: string | undefined): boolean {
  if (header === undefined) return false;
  let isParameter = false;
  for (const [part] of header.matchAll(preference)) {
    if (part === ',' || part === ';') {
      isParameter = part === ';';
    } else if (!isParameter) {
      const [name = '', value = ''] = part.split('=', 2).map((text) => text.trim());
      // RFC 7240 treats an empty value as no value.
      if (name.toLowerCase() === 'respond-async' && (value === '' || value === '""')) return true;
    }
  }
  return false;
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
    `must be an integer of milliseconds, from 1 to ${maxRequestTimeoutMs}`,
  );
}
