import Type, { type Static, type TSchema } from 'typebox';

/**
 * A nullable schema written as `type: [T, 'null']`: Ajv checks one keyword and a caller reads one line. A union would
 * report each of its branches.
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

/**
 * Custom keyword: extra text for a value of the wrong type, for cases where the type alone is not a sufficient
 * explanation.
 */
export const wrongTypeHint = 'wrongTypeHint';

/** Custom keyword: extra text for a string that is too short. */
export const lengthHint = 'lengthHint';

/**
 * Custom keyword: the `items` of a list that may be too long to check in one go. The validator does not check the
 * items; the code that reads the list does. The OpenAPI document shows them as `items`.
 */
export const lateItems = 'lateItems';

/** The default of a field that is filled in when the model is known, because not every model gets it. */
export const lateDefault = 'lateDefault';

/** A closed set of strings, as one `enum` keyword. */
export function StringEnum<const T extends readonly string[]>(values: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options });
}

/** A point in time in RFC 3339 format. */
export const Time = (description: string) => Type.String({ format: 'date-time', description });

/** A bound of a period: a time in RFC 3339 format, or a day in UTC, which an end includes. */
export const TimeBound = (description: string) =>
  Type.Optional(Type.String({ minLength: 10, maxLength: 40, description }));

/** A file of a list with more rows is refused, so that none is cut off silently. */
export const maxCsvRows = 100_000;

/** Page number of paged lists. */
export const Page = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  default: 1,
  description: 'Page number, starting at 1 with the newest items. A page past the last one is empty.',
});
export const PageSize = Type.Integer({
  minimum: 1,
  maximum: 100,
  default: 20,
  description: 'Maximum number of items per page.',
});

/** One page of a list, newest first. A page past the last is empty. */
export function PageOf<T extends TSchema>(item: T) {
  return Type.Object({
    total_count: Type.Integer({ description: 'Total number of items on all pages.' }),
    total_pages: Type.Integer({ description: 'Total number of pages; 0 if there are no items.' }),
    page: Type.Integer({ description: 'The number of this page.' }),
    page_size: Type.Integer({ description: 'Maximum number of items per page.' }),
    items: Type.Array(item, { description: 'Newest first.' }),
  });
}

export const RequestId = Type.String({
  description: 'The id of the request, as in the `x-request-id` header and in the request log.',
});

export const CreatedSeconds = Type.Integer({
  description: 'When the response was started, in Unix seconds.',
});

export const TotalTime = Type.Number({
  description: 'Seconds from acceptance of the request to its completion, including the time in the queue.',
});

export const CostRequest = Type.Number({
  description: 'The amount charged, in roubles, exact to nine decimal places; 0 for a free request.',
});

export const FreeRequest = Nullable(
  Type.Boolean({ description: 'Whether the request was paid for with a free request.' }),
);

export const EndUser = Type.Optional(
  Nullable(
    Type.String({
      maxLength: 512,
      description: 'Your own id for the end user. It is logged to help detect abuse.',
    }),
  ),
);
