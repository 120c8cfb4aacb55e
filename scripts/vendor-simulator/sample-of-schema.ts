import { isRecord } from './json-record.ts';

/**
 * A value that fits the common part of JSON Schema: what is required, and nothing else. Google's own form of schemas,
 * with types in capitals, counts as well.
 */
export function sampleOfSchema(schema: unknown): unknown {
  if (!isRecord(schema)) {
    return {};
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
      return [sampleOfSchema(schema['items'])];
    default: {
      const properties = isRecord(schema['properties']) ? schema['properties'] : {};
      const required = Array.isArray(schema['required']) ? schema['required'] : [];
      return Object.fromEntries(
        required.map((name: unknown) => [name, sampleOfSchema(properties[String(name)])]),
      );
    }
  }
}
