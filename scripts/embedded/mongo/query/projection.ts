import type { Doc } from '../bson/document.ts';
import { getField, getId, isObject } from '../bson/document.ts';
import { MongoError, refuse } from '../errors.ts';
import { isNumber, toNumber } from '../bson/numbers.ts';

export type Projector = (document: Doc) => Doc;

/** Fields to keep or leave out, by name; `true` ends a path. */
type Tree = Map<string, Tree | true>;

/** A projection of `find`: fields in, or fields out, and `$slice`. `undefined` where everything is wanted. */
export function compileProjection(spec: Doc | undefined): Projector | undefined {
  const entries = Object.entries(spec ?? {});
  if (entries.length === 0) return undefined;
  const slices = entries
    .filter(([, value]) => isObject(value))
    .map(([name, value]) => parseSlice(name, value as Doc));
  const flags = entries
    .filter(([, value]) => !isObject(value))
    .map(([name, value]) => [name, isOn(name, value)] as const);
  const project = compileInclusion(new Map(flags));
  return (document) => {
    const projected = { ...project(document) };
    for (const { name, slice } of slices) {
      const array = getField(document, name);
      if (array !== undefined) projected[name] = Array.isArray(array) ? slice(array) : array;
    }
    return projected;
  };
}

const keepAll: Projector = (document) => document;

/** The projection that keeps the fields that are on, or all but those that are off; `_id` stays unless it is off. */
export function compileInclusion(flags: Map<string, boolean>): Projector {
  const idFlag = flags.get('_id');
  const others = [...flags].filter(([name]) => name !== '_id');
  const includes = others[0]?.[1] ?? idFlag;
  if (includes === undefined) return keepAll;
  const tree: Tree = new Map();
  for (const [name, isOn] of others) {
    if (isOn !== includes) {
      const kind = includes ? 'exclusion on field ' : 'inclusion on field ';
      throw new MongoError(
        includes ? 'Location31254' : 'Location31253',
        `Cannot do ${kind}${name} in ${includes ? 'inclusion' : 'exclusion'} projection`,
      );
    }
    addPath(tree, name);
  }
  if (!includes) {
    if (idFlag === false) tree.set('_id', true);
    return (document) => leaveOut(document, tree) as Doc;
  }
  return (document) => {
    const kept = keep(document, tree) as Doc;
    const id = getId(document);
    return idFlag === false || id === undefined ? kept : { _id: id, ...kept };
  };
}

function addPath(tree: Tree, path: string): void {
  const parts = path.split('.');
  if (parts.some((part) => part === '' || part.startsWith('$'))) throw refuse(`the projection path ${path}`);
  let node = tree;
  for (const [depth, part] of parts.entries()) {
    const next = node.get(part);
    const isLast = depth === parts.length - 1;
    if (next === true || (isLast && next !== undefined)) {
      throw new MongoError('Location31249', `Path collision at ${path}`);
    }
    const child: Tree = next ?? new Map();
    node.set(part, isLast ? true : child);
    node = child;
  }
}

function keep(value: unknown, tree: Tree): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => isObject(item) || Array.isArray(item)).map((item) => keep(item, tree));
  }
  if (!isObject(value)) return undefined;
  const kept: Doc = {};
  for (const [name, item] of Object.entries(value)) {
    const branch = tree.get(name);
    if (branch === undefined) continue;
    const part = branch === true ? item : keep(item, branch);
    if (part !== undefined) kept[name] = part;
  }
  return kept;
}

function leaveOut(value: unknown, tree: Tree): unknown {
  if (Array.isArray(value)) return value.map((item) => leaveOut(item, tree));
  if (!isObject(value)) return value;
  const rest: Doc = {};
  for (const [name, item] of Object.entries(value)) {
    const branch = tree.get(name);
    if (branch !== true) rest[name] = branch === undefined ? item : leaveOut(item, branch);
  }
  return rest;
}

function isOn(name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  if (isNumber(value)) return toNumber(value) !== 0;
  throw refuse(`a computed field (${name}) in a projection of find`);
}

function parseSlice(name: string, value: Doc): { name: string; slice: (array: unknown[]) => unknown[] } {
  const [operator, ...others] = Object.keys(value);
  if (operator !== '$slice' || others.length > 0 || name.includes('.')) {
    throw refuse(`the projection ${name}: {${operator ?? ''}}`);
  }
  const count = toNumber(value.$slice);
  if (!Number.isInteger(count)) throw refuse('$slice with anything but a whole number');
  return { name, slice: (array) => (count < 0 ? array.slice(count) : array.slice(0, count)) };
}
