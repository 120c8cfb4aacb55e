import { maxJsonDepth } from '../../shared/runtime/json-reader.ts';
import { UpstreamError } from './upstream.ts';

/** Narrowing of what vendors send: everything of theirs is unknown until one of these has looked at it. */

export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a table of ours says of a word of others; the names that every object has by its nature are no entries. */
export function lookUp<T>(
  table: Readonly<Record<string, T>>,
  word: string | null | undefined,
): T | undefined {
  return word !== null && word !== undefined && Object.hasOwn(table, word) ? table[word] : undefined;
}

export function readText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Above it no vendor counts right: at the dearest price it comes to more roubles than a ledger's row can hold. */
const highestCount = 100_000_000;

/** A count of something: a whole number from zero on, else null. Zero is a value, not a lack of one. */
export function readCount(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= highestCount
    ? (value as number)
    : null;
}

export function readArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/**
 * Whether a value that came as a text within a body is nested deeper than a body may be: JSON.parse reads any depth, and
 * JSON.stringify, which writes the vendor's request, does not.
 */
export function isTooDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxJsonDepth) return true;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return false;
}

/** Parses a body or a chunk that must be a JSON object; the text itself stays out of the error, it may be anything. */
export function parseRecord(text: string, what: string): JsonRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UpstreamError('unavailable', `the upstream sent ${what} that is not JSON`, { cause: error });
  }
  return toRecord(value, what);
}

/** What a body or a chunk holds, which must be an object. */
export function toRecord(value: unknown, what: string): JsonRecord {
  if (!isRecord(value)) {
    throw new UpstreamError('unavailable', `the upstream sent ${what} that is not a JSON object`);
  }
  return value;
}
