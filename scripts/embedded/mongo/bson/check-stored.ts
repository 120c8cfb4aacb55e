import { getTypeOrder } from './bson-types.ts';
import { isObject } from './document.ts';
import { unsupported } from '../errors.ts';

/** MongoDB's nesting limit for stored documents. */
const maxDepth = 100;

/**
 * Rejects documents with types or field names that the filters, updates and indexes here would interpret differently
 * from MongoDB.
 */
export function checkStored(value: unknown, depth = 1): void {
  // Throws for unsupported types.
  getTypeOrder(value);
  const isNested = isObject(value) || Array.isArray(value);
  if (!isNested) return;
  if (depth > maxDepth) throw unsupported(`a document of more than ${maxDepth} levels`, 'Overflow');
  for (const name of Object.keys(value)) {
    if (name.startsWith('$') || name.includes('.')) throw unsupported(`the field name '${name}'`, 'BadValue');
    checkStored((value as Readonly<Record<string, unknown>>)[name], depth + 1);
  }
}
