import type { Doc } from '../bson/document.ts';
import { getId } from '../bson/document.ts';
import { unsupported } from '../errors.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';
import { parsePath } from '../bson/paths.ts';

export type Projector = (document: Doc) => Doc;

/**
 * Compiles a projection: the top-level fields to return, plus `_id` unless it is off. `undefined` returns all fields.
 */
export function compileProjection(spec: Doc | undefined): Projector | undefined {
  const { _id: idFlag = true, ...others } = spec ?? {};
  if (spec === undefined || Object.keys(spec).length === 0) return undefined;
  const returnsId = isOn('_id', idFlag);
  const returned = new Set(Object.keys(others));
  for (const [name, value] of Object.entries(others)) {
    if (parsePath(name).length > 1) throw unsupported(`the nested projection '${name}'`, 'BadValue');
    if (!isOn(name, value)) throw unsupported(`the projection '${name}: 0'`, 'BadValue');
  }
  if (returned.size === 0 && !returnsId) throw unsupported("the projection '_id: 0' alone", 'BadValue');
  return (document) => {
    const projected = Object.fromEntries(Object.entries(document).filter(([name]) => returned.has(name)));
    const id = getId(document);
    return returnsId && id !== undefined ? { _id: id, ...projected } : projected;
  };
}

function isOn(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  if (isNumber(value)) return toNumber(value) !== 0;
  throw unsupported(`a computed field (${name}) in a projection`, 'BadValue');
}
