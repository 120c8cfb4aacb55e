import Type from 'typebox';

/** A bound of a period: a time in RFC 3339 format, or a day in UTC, which `until` includes. */
export const timeBound = (description: string) =>
  Type.Optional(Type.String({ minLength: 10, maxLength: 40, description }));
