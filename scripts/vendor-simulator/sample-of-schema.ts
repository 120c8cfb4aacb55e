import { isRecord } from '../../shared/encoding/json-record.ts';

/** A schema may refer to itself. */
const MAX_DEPTH = 16;

/**
 * Creates a value that matches a schema, with only the required fields. Supports the common part of JSON Schema and
 * Google's schema format, with types in capitals. Uses the first of several alternatives.
 */
export function sampleOfSchema(schema: unknown, root: unknown = schema, depth = 0): unknown {
  if (!isRecord(schema) || depth > MAX_DEPTH) {
    return {};
  }
  const sample = (inner: unknown): unknown => sampleOfSchema(inner, root, depth + 1);
  if (typeof schema['$ref'] === 'string') {
    return sample(followReference(schema['$ref'], root));
  }
  const [first] = [schema['anyOf'], schema['oneOf'], schema['allOf']].find(Array.isArray) ?? [];
  if (first !== undefined && schema['type'] === undefined) {
    return sample(first);
  }
  if (schema['const'] !== undefined) {
    return schema['const'];
  }
  if (Array.isArray(schema['enum'])) {
    return schema['enum'][0];
  }
  const type: unknown = Array.isArray(schema['type']) ? schema['type'][0] : schema['type'];
  switch (typeof type === 'string' ? type.toLowerCase() : type) {
    case 'string':
      return 'simulated';
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'array':
      return [sample(schema['items'])];
    default: {
      const properties = isRecord(schema['properties']) ? schema['properties'] : {};
      const required = Array.isArray(schema['required']) ? schema['required'] : [];
      return Object.fromEntries(required.map((name: unknown) => [name, sample(properties[String(name)])]));
    }
  }
}

/** Resolves a reference within the document: `#/$defs/Step`. */
function followReference(reference: string, root: unknown): unknown {
  return reference
    .split('/')
    .slice(1)
    .reduce<unknown>((value, name) => (isRecord(value) ? value[decodeURIComponent(name)] : undefined), root);
}
