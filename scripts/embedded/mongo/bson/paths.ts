import type { Doc } from './document.ts';
import { getField, isObject } from './document.ts';
import { unsupported } from '../errors.ts';

export type ValueTest = (value: unknown) => boolean;

/** Splits a path such as `redeemed.at` into names. Rejects parts that have a special meaning in MongoDB. */
export function parsePath(path: string, codeName = 'BadValue'): string[] {
  const parts = path.split('.');
  const special = parts.find((part) => part === '' || part.startsWith('$') || /^\d+$/.test(part));
  if (special !== undefined) throw unsupported(`the part '${special}' of the path '${path}'`, codeName);
  return parts;
}

/**
 * Returns whether any value at the path passes the test. Enters arrays on the path, as MongoDB does. `undefined` stands
 * for a missing value. With `entersLast`, tests an array at the end of the path and also each of its elements.
 */
export function someAt(
  value: unknown,
  parts: string[],
  test: ValueTest,
  entersLast: boolean,
  depth = 0,
): boolean {
  const part = parts[depth];
  if (part === undefined) {
    return test(value) || (entersLast && Array.isArray(value) && value.some(test));
  }
  if (Array.isArray(value)) {
    return value.some(
      (element) => isObject(element) && someAt(getField(element, part), parts, test, entersLast, depth + 1),
    );
  }
  return someAt(isObject(value) ? getField(value, part) : undefined, parts, test, entersLast, depth + 1);
}

/**
 * Returns the single value at a path, or `undefined` if there is none.
 * @param purpose used in the error for an array, which would have several values
 */
export function getSingleAt(document: Doc, parts: string[], purpose: 'indexing' | 'sorting by'): unknown {
  let value: unknown = document;
  for (const part of parts) {
    if (Array.isArray(value)) break;
    value = isObject(value) ? getField(value, part) : undefined;
  }
  if (Array.isArray(value)) throw unsupported(`${purpose} the array at '${parts.join('.')}'`, 'BadValue');
  return value;
}
