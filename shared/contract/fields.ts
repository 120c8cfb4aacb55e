import Type, { type Static, type TSchema } from 'typebox';

/**
 * A nullable schema written as `type: [T, 'null']`: one keyword for Ajv to check and one line for a caller to read,
 * where a union would report each of its branches.
 */
export function Nullable<T extends TSchema>(schema: T) {
  const { type, enum: values, ...rest } = schema as TSchema & { type?: string; enum?: unknown[] };
  if (type === undefined) return Type.Unsafe<Static<T> | null>({ anyOf: [schema, { type: 'null' }] });
  return Type.Unsafe<Static<T> | null>({
    ...rest,
    type: [type, 'null'],
    ...(values === undefined ? {} : { enum: [...values, null] }),
  });
}

/** A closed set of strings, as one `enum` keyword. */
export function StringEnum<const T extends readonly string[]>(values: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options });
}

/** Page and page size of the lists that are paged. */
export const Page = Type.Integer({ minimum: 1, default: 1 });
