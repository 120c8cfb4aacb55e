import { invalidField } from '../../shared/contract/errors.ts';
import { maxJobWaitSeconds } from '../../shared/contract/jobs.ts';

/** Maximum time a request may wait for its work to start. */
export const maxRequestTimeoutMs = 24 * 60 * 60_000;
export const requestTimeoutHeader = 'X-Request-Timeout-Ms';

/** Far longer than any list of preferences that clients send. */
export const maxPreferLength = 1_024;

/** The preferences that a request to a model can have. */
export interface Preferences {
  readonly respondsAsync: boolean;
  /** How long to wait for the response before a job is returned. Null without a valid `wait`, or without a job. */
  readonly waitSeconds: number | null;
}

/**
 * Reads `respond-async` and `wait` from a `Prefer` header (RFC 7240, 2, 4.1 and 4.3). Names are case-insensitive, and of
 * a repeated preference the first one counts. Parameters and unknown preferences are skipped. A malformed or too long
 * header is ignored: a preference must never cause an error. `wait` alone is ignored, too.
 */
export function readPreferences(header = ''): Preferences {
  if (header.length > maxPreferLength) return { respondsAsync: false, waitSeconds: null };
  let respondsAsync = false;
  let waitSeconds: number | null = null;
  let isParameter = false;
  for (let at = 0; at < header.length; at++) {
    const end = findSeparator(header, at);
    if (!isParameter) {
      const { name, value } = splitPreference(header.slice(at, end));
      // RFC 7240 treats an empty value as no value.
      if (name === 'respond-async' && value === '') respondsAsync = true;
      else if (name === 'wait') waitSeconds ??= readWait(value);
    }
    isParameter = header[end] === ';';
    at = end;
  }
  return { respondsAsync, waitSeconds: respondsAsync ? waitSeconds : null };
}

function readWait(value: string): number | null {
  return /^\d+$/.test(value) ? Math.min(maxJobWaitSeconds, Math.max(1, Number(value))) : null;
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

/** Returns the name in lower case, and the value without the quotes around it; empty if there is none. */
function splitPreference(preference: string): { readonly name: string; readonly value: string } {
  const equals = preference.indexOf('=');
  const name = equals < 0 ? preference : preference.slice(0, equals);
  const value = equals < 0 ? '' : preference.slice(equals + 1).trim();
  const isQuoted = value.length >= 2 && value.startsWith('"') && value.endsWith('"');
  return { name: name.trim().toLowerCase(), value: isQuoted ? value.slice(1, -1) : value };
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
