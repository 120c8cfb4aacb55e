import type { ErrorObject } from 'ajv/dist/2020.js';

/** Removes Ajv errors that do not help the caller. */
export function removeUnhelpfulErrors(all: readonly ErrorObject[]): ErrorObject[] {
  const errors = removeErrorsOfUnmatchedArrayTypes(all);
  // A failed union reports itself and each of its branches. If the branch that matches the value's type failed,
  // only that branch's error helps the caller. Otherwise only the union's error does.
  const unions = new Set(errors.filter((error) => error.keyword === 'anyOf').map(locationKey));
  const explainedUnions = new Set<string>();
  for (const error of errors) {
    const isUnmatchedType = (union: string): boolean =>
      error.keyword === 'type' && union === enclosingUnion(error);
    for (const union of enclosingUnions(error))
      if (unions.has(union) && !isUnmatchedType(union)) explainedUnions.add(union);
  }
  // A value of the wrong type also fails the enum, and the list of allowed values is more helpful.
  const enumParents = new Set(errors.filter((error) => error.keyword === 'enum').map(parentOf));
  const isUnhelpful = (error: ErrorObject): boolean => {
    if (error.keyword === 'anyOf') return explainedUnions.has(locationKey(error));
    return (
      error.keyword === 'type' && (unions.has(enclosingUnion(error)) || enumParents.has(parentOf(error)))
    );
  };
  return errors.filter((error) => !isUnhelpful(error));
}

interface Branch {
  readonly type?: string;
  readonly items?: Branch;
}

/**
 * For a union of several array types: keeps only the errors of the array type that matches the first item, or the
 * union's error if none does.
 */
function removeErrorsOfUnmatchedArrayTypes(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const unmatched: { readonly schema: string; readonly instance: string }[] = [];
  for (const { keyword, data, schema, schemaPath, instancePath } of errors) {
    if (keyword !== 'anyOf' || !Array.isArray(data)) continue;
    const branches = schema as readonly Branch[];
    const arrayTypes = [...branches.keys()].filter((i) => branches[i]!.type === 'array');
    if (arrayTypes.length < 2) continue;
    const matching = arrayTypes.find((i) => data.length === 0 || matchesType(branches[i]!.items, data[0]));
    for (const i of arrayTypes) {
      if (i !== matching) unmatched.push({ schema: `${schemaPath}/${i}/`, instance: instancePath });
    }
  }
  const isOfUnmatchedType = ({ schemaPath, instancePath }: ErrorObject): boolean =>
    unmatched.some(
      ({ schema, instance }) => schemaPath.startsWith(schema) && instancePath.startsWith(instance),
    );
  return unmatched.length === 0 ? errors : errors.filter((error) => !isOfUnmatchedType(error));
}

function matchesType({ type }: Branch = {}, item: unknown): boolean {
  if (Array.isArray(item)) return type === 'array';
  return type === typeof item || (type === 'integer' && typeof item === 'number');
}

const unionMark = '/anyOf/';

/** The schema path and instance path, which together distinguish the same union in two elements of a list. */
const locationKey = (error: ErrorObject): string => `${error.schemaPath} ${error.instancePath}`;

/** Like `locationKey`, for the schema that contains the failed keyword. */
const parentOf = ({ schemaPath, instancePath }: ErrorObject): string =>
  `${schemaPath.slice(0, schemaPath.lastIndexOf('/'))} ${instancePath}`;

/** The innermost union around the failed keyword, at the same value, in the format of `locationKey`. */
function enclosingUnion(error: ErrorObject): string {
  const at = error.schemaPath.lastIndexOf(unionMark);
  return at < 0 ? '' : `${error.schemaPath.slice(0, at)}/anyOf ${error.instancePath}`;
}

/**
 * Yields every union that can contain the error, in the format of `locationKey`: each union in its schema path, paired
 * with its value and with each parent of the value.
 */
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
