import { isRecord, type JsonRecord } from '../../shared/encoding/json-record.ts';
import { UpstreamError } from './upstream.ts';

/** Type narrowing for vendors' JSON, which has the type `unknown` until one of these functions has checked it. */

/** Looks up an external name in one of our tables, ignoring properties that every object inherits. */
export function lookUp<T>(table: Readonly<Record<string, T>>, key: string | null | undefined): T | undefined {
  return key !== null && key !== undefined && Object.hasOwn(table, key) ? table[key] : undefined;
}

export function readText(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** No correct vendor count is higher. At the highest price, a higher one would exceed the maximum of a ledger row. */
const maxCount = 100_000_000;

/** Returns a non-negative integer, or null for anything else. Zero is a value, not a missing count. */
export function readCount(value: unknown): number | null {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxCount
    ? (value as number)
    : null;
}

export function readArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Whether the last data of a stream is whole: it may have been cut off. */
export function isCompleteJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Parses a body or chunk that must be a JSON object. The error does not contain the text, which may be anything.
 */
export function parseRecord(text: string, what: string): JsonRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UpstreamError('unavailable', `the upstream sent ${what} that is not JSON`, { cause: error });
  }
  return toRecord(value, what);
}

/** Checks that a parsed body or chunk is an object. */
export function toRecord(value: unknown, what: string): JsonRecord {
  if (!isRecord(value)) {
    throw new UpstreamError('unavailable', `the upstream sent ${what} that is not a JSON object`);
  }
  return value;
}
