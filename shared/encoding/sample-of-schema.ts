import { isRecord } from './json-record.ts';

/** A schema may refer to itself. */
const maxDepth = 16;
/** Maximum characters of the JSON, approximately: at each level, a schema may refer to itself several times. */
const maxChars = 32_768;
/** More characters or items than this are not added to reach a minimum. */
const maxLength = 200;

const textOfFormat: Readonly<Record<string, string>> = {
  'date-time': '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00Z',
  email: 'someone@example.com',
  uri: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
  ipv4: '192.0.2.1',
};

/**
 * Creates a value that matches a schema, with only the required fields. Supports the common part of JSON Schema and
 * Google's schema format, with types in capitals. Uses the first of several alternatives. `pattern`, and schemas that
 * are combined by `allOf`, are not followed.
 * @param text the value of strings that may be any text
 */
export function sampleOfSchema(schema: unknown, text: string): unknown {
  return new Sampler(schema, text).sample(schema, 0);
}

class Sampler {
  readonly #root: unknown;
  readonly #text: string;
  #chars = 0;

  constructor(root: unknown, text: string) {
    this.#root = root;
    this.#text = text;
  }

  sample(schema: unknown, depth: number): unknown {
    this.#chars += 2;
    if (!isRecord(schema) || depth > maxDepth || this.#chars > maxChars) return {};
    if (typeof schema['$ref'] === 'string')
      return this.sample(followReference(schema['$ref'], this.#root), depth + 1);
    const [first] = [schema['anyOf'], schema['oneOf'], schema['allOf']].find(Array.isArray) ?? [];
    if (first !== undefined && schema['type'] === undefined) return this.sample(first, depth + 1);
    if (schema['const'] !== undefined) return this.#counted(schema['const']);
    if (Array.isArray(schema['enum'])) return this.#counted(schema['enum'][0]);
    const type: unknown = Array.isArray(schema['type']) ? schema['type'][0] : schema['type'];
    switch (typeof type === 'string' ? type.toLowerCase() : type) {
      case 'string':
        return this.#sampleText(schema);
      case 'integer':
      case 'number':
        return sampleNumber(schema);
      case 'boolean':
        return true;
      case 'null':
        return null;
      case 'array': {
        const count = Math.min(maxLength, Math.max(1, readNumber(schema['minItems']) ?? 1));
        const items = readNumber(schema['maxItems']) === 0 ? 0 : count;
        return Array.from({ length: items }, () => this.sample(schema['items'], depth + 1));
      }
      default: {
        const properties = isRecord(schema['properties']) ? schema['properties'] : {};
        const sample: [string, unknown][] = [];
        for (const name of Array.isArray(schema['required']) ? schema['required'] : []) {
          if (typeof name !== 'string' || this.#chars > maxChars) continue;
          this.#chars += name.length;
          const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
          sample.push([name, this.sample(property, depth + 1)]);
        }
        return Object.fromEntries(sample);
      }
    }
  }

  #sampleText(schema: Readonly<Record<string, unknown>>): string {
    const formatted = textOfFormat[String(schema['format'])];
    if (formatted !== undefined) return formatted;
    const min = Math.min(maxLength, readNumber(schema['minLength']) ?? 0);
    const text = this.#text.padEnd(min, '.').slice(0, readNumber(schema['maxLength']) ?? undefined);
    this.#chars += text.length;
    return text;
  }

  #counted(value: unknown): unknown {
    this.#chars += JSON.stringify(value)?.length ?? 0;
    return value;
  }
}

function sampleNumber(schema: Readonly<Record<string, unknown>>): number {
  const above = readNumber(schema['exclusiveMinimum']);
  const below = readNumber(schema['exclusiveMaximum']);
  const least = readNumber(schema['minimum']) ?? (above === null ? -Infinity : above + 1);
  const most = readNumber(schema['maximum']) ?? (below === null ? Infinity : below - 1);
  return Math.max(least, Math.min(most, 1));
}

const readNumber = (value: unknown): number | null => (typeof value === 'number' ? value : null);

/** Resolves a reference within the document: `#/$defs/Step`. */
function followReference(reference: string, root: unknown): unknown {
  return reference
    .split('/', maxDepth)
    .slice(1)
    .reduce<unknown>(
      (value, name) => (isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined),
      root,
    );
}
