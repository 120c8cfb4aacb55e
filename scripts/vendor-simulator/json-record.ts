import { isRecord, type JsonRecord } from '../../shared/encoding/json-record.ts';

/** Returns the object, or an empty one for anything else. */
export function readRecord(value: unknown): JsonRecord {
  return isRecord(value) ? value : {};
}

export function readRecords(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.map(readRecord) : [];
}

/** Returns the text, or an empty one for anything else. */
export function readText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
