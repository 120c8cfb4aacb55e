import { emptyArray } from './bson-types.ts';
import type { Doc } from './document.ts';
import { getField, isObject } from './document.ts';

export type ValueTest = (value: unknown) => boolean;

const isArrayIndex = (part: string) => /^\d+$/.test(part);

/**
 * Does any value at the path pass the test? Arrays on the way are entered, as MongoDB does. `undefined` stands for a
 * missing value. With `entersLast` an array at the end of the path counts itself and each of its elements.
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
    const index = Number(part);
    if (isArrayIndex(part) && index < value.length) {
      if (someAt(value[index], parts, test, entersLast, depth + 1)) return true;
    }
    return value.some(
      (element) => isObject(element) && someAt(getField(element, part), parts, test, entersLast, depth + 1),
    );
  }
  return someAt(isObject(value) ? getField(value, part) : undefined, parts, test, entersLast, depth + 1);
}

/** The values at a path as an index or a sort sees them: an array's elements, or one missing value. */
export function collectAt(
  value: unknown,
  parts: string[],
  depth = 0,
): { values: unknown[]; isArray: boolean } {
  const part = parts[depth];
  if (part === undefined) {
    if (!Array.isArray(value)) return { values: [value], isArray: false };
    return { values: value.length > 0 ? value : [emptyArray], isArray: true };
  }
  if (Array.isArray(value)) {
    if (isArrayIndex(part) && Number(part) < value.length) {
      return { values: collectAt(value[Number(part)], parts, depth + 1).values, isArray: true };
    }
    const values = value
      .filter((element) => isObject(element))
      .flatMap((element) => collectAt(element, parts, depth).values);
    return { values: values.length > 0 ? values : [undefined], isArray: true };
  }
  return collectAt(isObject(value) ? getField(value, part) : undefined, parts, depth + 1);
}

/** The value at a path without entering arrays, `undefined` where there is none. */
export function getAt(document: Doc, path: string): unknown {
  let value: unknown = document;
  for (const part of path.split('.')) value = isObject(value) ? getField(value, part) : undefined;
  return value;
}
