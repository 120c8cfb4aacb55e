import type { Shape } from './gemini-shapes.ts';
import { readBase64 } from '../read-base64.ts';
import { isRecord, type JsonRecord } from '../../../shared/encoding/json-record.ts';

export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/**
 * Parses a message as Google does: it accepts field names in camel or snake case, treats null as missing, and accepts
 * a single value for a list. The result uses camel case throughout.
 */
export function parseGeminiMessage(
  body: JsonRecord,
  shape: Shape,
): { readonly message: JsonRecord; readonly violations: readonly FieldViolation[] } {
  const violations: FieldViolation[] = [];
  const message = readShape(body, shape, '', violations);
  return { message: isRecord(message) ? message : {}, violations };
}

function readShape(value: unknown, shape: Shape, path: string, violations: FieldViolation[]): unknown {
  if (typeof shape === 'string') {
    if (!TYPE_CHECKS[shape](value)) {
      violations.push(describeTypeError(value, shape, path));
    }
    return value;
  }
  if ('list' in shape) {
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return items.map((item, index) => readShape(item, shape.list, `${path}[${index}]`, violations));
  }
  if (!isRecord(value)) {
    violations.push(describeTypeError(value, 'message', path));
    return {};
  }
  if ('map' in shape) {
    const entries = Object.entries(value);
    return Object.fromEntries(
      entries.map(([name, item], index) => [
        name,
        readShape(item, shape.map, `${path}[${index}].value`, violations),
      ]),
    );
  }
  return readFields(value, shape.fields(), path, violations);
}

function readFields(
  value: JsonRecord,
  fields: Readonly<Record<string, Shape>>,
  path: string,
  violations: FieldViolation[],
): JsonRecord {
  const read: Record<string, unknown> = {};
  for (const [sentName, item] of Object.entries(value)) {
    const name = toCamelCase(sentName);
    const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (shape === undefined) {
      const at = path === '' ? '' : ` at '${path}'`;
      const description = `Invalid JSON payload received. Unknown name "${sentName}"${at}: Cannot find field.`;
      violations.push({ field: path, description });
    } else if (item !== null) {
      const inner = `${path === '' ? '' : `${path}.`}${toSnakeCase(name)}`;
      read[name] = readShape(item, shape, inner, violations);
    }
  }
  return read;
}

const TYPE_CHECKS: Readonly<Record<Extract<Shape, string>, (value: unknown) => boolean>> = {
  any: () => true,
  boolean: (value) => typeof value === 'boolean',
  bytes: (value) => typeof value === 'string' && readBase64(value) !== null,
  // Large integers are sent as text, and Google accepts all numbers as text.
  number: (value) =>
    (typeof value === 'number' || typeof value === 'string') && Number.isFinite(Number(value)),
  struct: isRecord,
  text: (value) => typeof value === 'string',
};

const TYPE_NAMES: Readonly<Record<Extract<Shape, string> | 'message', string>> = {
  any: 'type.googleapis.com/google.protobuf.Value',
  boolean: 'TYPE_BOOL',
  bytes: 'TYPE_BYTES',
  message: 'TYPE_MESSAGE',
  number: 'TYPE_DOUBLE',
  struct: 'type.googleapis.com/google.protobuf.Struct',
  text: 'TYPE_STRING',
};

function describeTypeError(value: unknown, type: keyof typeof TYPE_NAMES, path: string): FieldViolation {
  if (Array.isArray(value) && type !== 'struct') {
    const name = path.slice(path.lastIndexOf('.') + 1);
    const description = `Invalid JSON payload received. Unknown name "${name}" at '${path}': Proto field is not repeating, cannot start list.`;
    return { field: path, description };
  }
  const shown = type === 'bytes' ? 'Base64 decoding failed' : JSON.stringify(value);
  return { field: path, description: `Invalid value at '${path}' (${TYPE_NAMES[type]}), ${shown}` };
}

function toCamelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function toSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
