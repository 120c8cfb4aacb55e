import type { JsonSchema } from './description.ts';

/** The types that a keyword restricts. It says nothing about values of other types. */
const typesOfKeyword: Readonly<Partial<Record<keyof JsonSchema, readonly string[]>>> = {
  format: ['string'],
  minLength: ['string'],
  maxLength: ['string'],
  pattern: ['string'],
  contentMediaType: ['string'],
  contentSchema: ['string'],
  minimum: ['number', 'integer'],
  maximum: ['number', 'integer'],
  exclusiveMinimum: ['number', 'integer'],
  items: ['array'],
  minItems: ['array'],
  maxItems: ['array'],
  properties: ['object'],
  required: ['object'],
  additionalProperties: ['object'],
};

/**
 * Writes a schema with a list of types as a union with one branch per type, because many generators of clients cannot
 * read such a list. Each keyword goes to the branches that it restricts. The contract keeps the list, which Ajv checks
 * faster and reports as one error.
 */
export function splitTypes(schema: JsonSchema): JsonSchema {
  const { type: types = [], examples, enum: values, ...keywords } = schema;
  const branches = [types].flat().map((type): JsonSchema | null => {
    const choices = values?.filter((value) => isOfType(value, type));
    if (choices?.length === 0) return null;
    if (type === 'null') return { type };
    const own = Object.entries(keywords).filter(([keyword]) => {
      const restricted = typesOfKeyword[keyword as keyof JsonSchema];
      return restricted === undefined || restricted.includes(type);
    });
    // Both booleans are no restriction, and generators have no enum of booleans.
    const isRestricted = choices !== undefined && !(type === 'boolean' && choices.length === 2);
    return { type, ...(isRestricted ? { enum: choices } : {}), ...Object.fromEntries(own) };
  });
  return {
    ...(examples === undefined ? {} : { examples }),
    anyOf: branches.filter((branch) => branch !== null),
  };
}

/**
 * Adds a default. That of a union goes to the branch that it belongs to: some generators cannot write it beside
 * `anyOf`, and others would make the field required or send the default in every request. That of a nullable list of
 * values stays beside it, because openapi-generator for Go cannot write it elsewhere.
 */
export function addDefault(schema: JsonSchema, value: unknown): JsonSchema {
  const { anyOf = [] } = schema;
  const branches = anyOf.filter(({ type }) => type !== 'null');
  const owner = branches.find(({ type }) => typeof type === 'string' && isOfType(value, type));
  const isNullableEnum = branches.length === 1 && owner?.enum !== undefined;
  if (owner === undefined || isNullableEnum) return { default: value, ...schema };
  const withDefault: JsonSchema = { ...owner, default: value };
  return { ...schema, anyOf: anyOf.map((branch) => (branch === owner ? withDefault : branch)) };
}

function isOfType(value: unknown, type: string): boolean {
  if (value === null) return type === 'null';
  if (Array.isArray(value)) return type === 'array';
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}
