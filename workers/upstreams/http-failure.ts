/**
 * Helpers with which every dialect describes an error response: how long to wait, and the vendor's message without
 * secrets.
 */

const MAX_MESSAGE_CHARS = 500;
const REDACTED = '[redacted]';
/**
 * Vendors echo a shortened key (`sk-abc***xyz`). Anything that has this many leading characters in common with the
 * key is redacted as well.
 */
const SHARED_PREFIX_CHARS = 8;

export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Reads `retry-after-ms`, or `retry-after` as seconds or a date. Returns null if there is no valid time. */
export function readRetryAfterMs(headers: HttpHeaders, nowMs: number): number | null {
  const milliseconds = parseNumber(readHeader(headers, 'retry-after-ms'));
  if (milliseconds !== null) {
    return Math.ceil(milliseconds);
  }
  const text = readHeader(headers, 'retry-after');
  const seconds = parseNumber(text);
  if (seconds !== null) {
    return Math.ceil(seconds * 1000);
  }
  // Date.parse accepts almost any number as a date; an HTTP date always contains letters.
  const dateMs = text !== null && /[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs);
}

export function readHeader(headers: HttpHeaders, name: string): string | null {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

function parseNumber(text: string | null): number | null {
  if (text === null || !/^\s*\d+(\.\d+)?\s*$/.test(text)) {
    return null;
  }
  return Number(text);
}

/**
 * Makes the vendor's text safe to log or show: on one line, of limited length, and with the key redacted in any form in
 * which it was echoed.
 */
export function cleanVendorText(text: string, apiKey: string | null): string {
  const flat = redactKey(text, apiKey)
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim();
  return flat.length > MAX_MESSAGE_CHARS ? `${flat.slice(0, MAX_MESSAGE_CHARS - 1)}…` : flat;
}

function redactKey(text: string, apiKey: string | null): string {
  let clean = text.replaceAll(/\bBearer\s+[^\s"',]+/gi, `Bearer ${REDACTED}`);
  if (apiKey === null || apiKey === '') {
    return clean;
  }
  clean = clean.replaceAll(apiKey, REDACTED).replaceAll(encodeURIComponent(apiKey), REDACTED);
  if (apiKey.length > SHARED_PREFIX_CHARS) {
    const prefix = apiKey.slice(0, SHARED_PREFIX_CHARS).replaceAll(/[^\w]/g, String.raw`\$&`);
    clean = clean.replaceAll(new RegExp(`${prefix}[^\\s"',]*`, 'g'), REDACTED);
  }
  return clean;
}
