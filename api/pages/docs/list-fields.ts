import type { JsonSchema } from '../../description/description.ts';
import { resolveSchema } from '../../description/schema-components.ts';

export type Schemas = Readonly<Record<string, JsonSchema>>;

/** A row in a table of fields, and the fields of the objects in that field. */
export interface Field {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  /** The default value as JSON. */
  readonly default: string | null;
  /** The only allowed values, as JSON. */
  readonly choices: readonly string[];
  /** For example `0 to 2` or `at most 255 characters`. */
  readonly bounds: string;
  readonly description: string;
  /** Path to the objects in the field: `messages[]` for each item of a list, `sums{}` for each entry of a map. */
  readonly path: string;
  /** The fields of those objects. */
  readonly fields: readonly Field[];
}

/**
 * Bounds the recursion, so that a recursive schema could not hang the page. No schema of the contract is recursive or
 * even a tenth as deep.
 */
const maxDepth = 20;

/** Lists the fields of an object, or of the objects in a list or map. */
export function listFields(schema: JsonSchema, schemas: Schemas, path = '', depth = 0): Field[] {
  const { properties = {}, required = [] } = findObject(schema, schemas, path)?.schema ?? {};
  return Object.entries(properties).map(([name, fieldSchema]) => {
    const field = describeField(name, fieldSchema, schemas, required.includes(name));
    const inner = findObject(fieldSchema, schemas, path === '' ? name : `${path}.${name}`);
    if (inner === null || depth >= maxDepth) return field;
    return { ...field, path: inner.path, fields: listFields(inner.schema, schemas, inner.path, depth + 1) };
  });
}

export function describeField(name: string, schema: JsonSchema, schemas: Schemas, required: boolean): Field {
  const resolved = resolveNullable(schema, schemas);
  const alternatives = [resolved, ...(resolved.anyOf ?? [])];
  const choices = alternatives.flatMap((one) => (one.const === undefined ? (one.enum ?? []) : [one.const]));
  const value = alternatives.find((one) => one.default !== undefined)?.default;
  return {
    name,
    type: describeType(schema, schemas),
    required,
    default: value === undefined ? null : JSON.stringify(value),
    choices: choices.map((value) => JSON.stringify(value)),
    bounds: describeBounds(resolved),
    description: resolved.description ?? '',
    path: '',
    fields: [],
  };
}

/** Merges a reference with its component, and a union with null with its other branch. */
function resolveNullable(schema: JsonSchema, schemas: Schemas): JsonSchema {
  const resolved = { ...resolveSchema(schema, schemas), ...schema };
  const [only, ...others] = (resolved.anyOf ?? []).filter(({ type }) => type !== 'null');
  if (only === undefined || others.length > 0) return resolved;
  const { anyOf: _, ...own } = resolved;
  return { ...resolveNullable(only, schemas), ...own };
}

interface FoundObject {
  readonly schema: JsonSchema;
  /** Path with `[]` for each list around the object and `{}` for each map. */
  readonly path: string;
}

/** Finds the object in a field: directly, in a list or map, or as one of several alternatives. */
function findObject(schema: JsonSchema, schemas: Schemas, path: string): FoundObject | null {
  const resolved = resolveSchema(schema, schemas) ?? schema;
  if (resolved.properties !== undefined) return { schema: resolved, path };
  if (resolved.items !== undefined) return findObject(resolved.items, schemas, `${path}[]`);
  if (typeof resolved.additionalProperties === 'object')
    return findObject(resolved.additionalProperties, schemas, `${path}{}`);
  for (const branch of resolved.anyOf ?? []) {
    const found = findObject(branch, schemas, path);
    if (found !== null) return found;
  }
  return null;
}

/** Returns text such as `string or null` or `array of object`. */
function describeType(schema: JsonSchema, schemas: Schemas): string {
  const resolved = resolveSchema(schema, schemas) ?? schema;
  if (resolved.anyOf !== undefined) {
    return [...new Set(resolved.anyOf.map((branch) => describeType(branch, schemas)))].join(' or ');
  }
  const types = [resolved.type ?? []].flat();
  if (types.length === 0) return resolved.const === undefined ? 'any' : typeof resolved.const;
  const ofItems = resolved.items === undefined ? 'any' : describeType(resolved.items, schemas);
  const names = types.map((type) => (type === 'array' && ofItems !== 'any' ? `array of ${ofItems}` : type));
  return names.join(' or ');
}

function describeBounds(schema: JsonSchema): string {
  const array = schema.anyOf?.find((branch) => branch.items !== undefined);
  const { minItems, maxItems } = array ?? schema;
  return [
    describeRange(schema.minimum, schema.maximum, ''),
    schema.exclusiveMinimum === undefined ? '' : `above ${schema.exclusiveMinimum}`,
    describeRange(schema.minLength, schema.maxLength, 'characters'),
    describeRange(minItems, maxItems, 'items'),
    schema.format === 'date' ? 'YYYY-MM-DD' : schema.format === 'date-time' ? 'ISO 8601' : '',
    schema.format === 'uuid' ? 'UUID' : '',
  ]
    .filter((bound) => bound !== '')
    .join(', ');
}

function describeRange(min: number | undefined, maximum: number | undefined, unit: string): string {
  // The largest exact integer means that the API has no limit.
  const max = maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum;
  if (min === undefined && max === undefined) return '';
  const range =
    max === undefined ? `at least ${min}` : min === undefined ? `at most ${max}` : `${min} to ${max}`;
  return `${range} ${max === 1 || (max === undefined && min === 1) ? unit.replace(/s$/, '') : unit}`.trim();
}
