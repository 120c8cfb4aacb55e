export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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
