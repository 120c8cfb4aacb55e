import type { ErrorObject } from 'ajv/dist/2020.js';

/** Leaves out what Ajv reports of a value and what tells its sender nothing. */
export function dropNoise(all: readonly ErrorObject[]): ErrorObject[] {
  const errors = dropOtherLists(all);
  // A failed union reports itself and each of its branches; where a branch of the value's own type failed, only that
  // branch tells the caller something, else only the union does.
  const unions = new Set(errors.filter((error) => error.keyword === 'anyOf').map(placeOf));
  const explained = new Set<string>();
  for (const error of errors) {
    const isOwnType = (union: string): boolean => error.keyword === 'type' && union === enclosingUnion(error);
    for (const union of enclosingUnions(error))
      if (unions.has(union) && !isOwnType(union)) explained.add(union);
  }
  // A value of another type is none of the enumerated ones either, and their list says more.
  const listed = new Set(errors.filter((error) => error.keyword === 'enum').map(parentOf));
  const isNoise = (error: ErrorObject): boolean => {
    if (error.keyword === 'anyOf') return explained.has(placeOf(error));
    return error.keyword === 'type' && (unions.has(enclosingUnion(error)) || listed.has(parentOf(error)));
  };
  return errors.filter((error) => !isNoise(error));
}

interface Branch {
  readonly type?: string;
  readonly items?: Branch;
}

/**
 * Of a union of several kinds of lists, a list is told what its own kind wants, which is the kind of its first item. One
 * of no kind is told what the union wants.
 */
function dropOtherLists(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const others: { readonly schema: string; readonly instance: string }[] = [];
  for (const { keyword, data, schema, schemaPath, instancePath } of errors) {
    if (keyword !== 'anyOf' || !Array.isArray(data)) continue;
    const branches = schema as readonly Branch[];
    const lists = [...branches.keys()].filter((i) => branches[i]!.type === 'array');
    if (lists.length < 2) continue;
    const own = lists.find((i) => data.length === 0 || isOfKind(branches[i]!.items, data[0]));
    for (const i of lists) {
      if (i !== own) others.push({ schema: `${schemaPath}/${i}/`, instance: instancePath });
    }
  }
  const isOfOther = ({ schemaPath, instancePath }: ErrorObject): boolean =>
    others.some(({ schema, instance }) => schemaPath.startsWith(schema) && instancePath.startsWith(instance));
  return others.length === 0 ? errors : errors.filter((error) => !isOfOther(error));
}

function isOfKind({ type }: Branch = {}, item: unknown): boolean {
  if (Array.isArray(item)) return type === 'array';
  return type === typeof item || (type === 'integer' && typeof item === 'number');
}

const unionMark = '/anyOf/';

/** A schema's place and the value's: what tells the same union apart in two elements of a list. */
const placeOf = (error: ErrorObject): string => `${error.schemaPath} ${error.instancePath}`;

/** The same for the schema that the failed keyword is one of. */
const parentOf = ({ schemaPath, instancePath }: ErrorObject): string =>
  `${schemaPath.slice(0, schemaPath.lastIndexOf('/'))} ${instancePath}`;

/** The union whose branch failed on the value itself, as placeOf names it. */
function enclosingUnion(error: ErrorObject): string {
  const at = error.schemaPath.lastIndexOf(unionMark);
  return at < 0 ? '' : `${error.schemaPath.slice(0, at)}/anyOf ${error.instancePath}`;
}

/** Every union that the fault lies in: those around its schema, at its value or at one that holds it. */
function* enclosingUnions(error: ErrorObject): Generator<string> {
  for (
    let at = error.schemaPath.indexOf(unionMark);
    at >= 0;
    at = error.schemaPath.indexOf(unionMark, at + 1)
  ) {
    const schema = `${error.schemaPath.slice(0, at)}/anyOf`;
    for (let path = error.instancePath; ; path = path.slice(0, path.lastIndexOf('/'))) {
      yield `${schema} ${path}`;
      if (path === '') break;
    }
  }
}
