import { lateDefault, lateItems, lengthHint, wrongTypeHint } from '../../shared/contract/fields.ts';
import type { JsonSchema } from './description.ts';
import { addDefault, splitTypes } from './split-types.ts';

/** Requests may omit fields that have a default. Responses always contain all required fields. */
export type Direction = 'request' | 'response';

const prefix = '#/components/schemas/';

/**
 * Rewrites the contract's schemas for the OpenAPI document. A schema with a `title` becomes the component of that name,
 * and every use becomes a reference. What is specific to one use (its description, its default, whether it is
 * nullable) stays next to the reference. No schema has a list of types: generators of clients read unions better.
 */
export class SchemaComponents {
  readonly #components = new Map<string, JsonSchema>();

  /** Returns all components, in alphabetical order of their names. */
  all(): Record<string, JsonSchema> {
    const entries = [...this.#components].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries);
  }

  /** @throws Error if two different schemas have the same title */
  rewrite(schema: JsonSchema, direction: Direction): JsonSchema {
    const {
      title,
      description,
      [lateDefault]: late,
      default: defaultValue = late,
      [wrongTypeHint]: _hint,
      [lengthHint]: _lengthHint,
      [lateItems]: items,
      ...others
    } = schema;
    const keywords = items === undefined ? others : { ...others, items };
    const named = title === undefined ? keywords : { title, ...keywords };
    const rewritten = Array.isArray(keywords.type)
      ? this.#rewriteParts(splitTypes(named), direction)
      : title === undefined
        ? this.#rewriteParts(keywords, direction)
        : this.#refer(title, keywords, direction);
    return {
      ...(description === undefined ? {} : { description }),
      ...(defaultValue === undefined ? rewritten : addDefault(rewritten, defaultValue)),
    };
  }

  #refer(title: string, schema: JsonSchema, direction: Direction): JsonSchema {
    const rewritten = this.#rewriteParts(schema, direction);
    const known = this.#components.get(title);
    if (known === undefined) this.#components.set(title, rewritten);
    else if (!isSame(known, rewritten)) {
      throw new Error(
        `Two schemas of the contract differ and have the title "${title}". Rename one of them.`,
      );
    }
    return { $ref: `${prefix}${title}` };
  }

  #rewriteParts(schema: JsonSchema, direction: Direction): JsonSchema {
    const { properties, required, items, anyOf, allOf, additionalProperties } = schema;
    const rewriteAll = (schemas: readonly JsonSchema[]): JsonSchema[] =>
      schemas.map((one) => this.rewrite(one, direction));
    const rewritten = {
      ...schema,
      ...(items === undefined ? {} : { items: this.rewrite(items, direction) }),
      ...(anyOf === undefined ? {} : { anyOf: rewriteAll(anyOf) }),
      ...(allOf === undefined ? {} : { allOf: rewriteAll(allOf) }),
      ...(typeof additionalProperties === 'object'
        ? { additionalProperties: this.rewrite(additionalProperties, direction) }
        : {}),
    };
    if (properties === undefined) return rewritten;
    const { required: _all, ...others } = rewritten;
    const isRequired = (name: string): boolean =>
      direction === 'response' || properties[name]?.default === undefined;
    const requiredNames = (required ?? []).filter(isRequired);
    return {
      ...others,
      ...(requiredNames.length > 0 ? { required: requiredNames } : {}),
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, one]) => [name, this.rewrite(one, direction)]),
      ),
    };
  }
}

/** Returns whether two schemas are equal, ignoring key order. */
function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(sortKeys(a)) === JSON.stringify(sortKeys(b));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sortKeys(inner)]));
}

/**
 * Resolves a reference to its component.
 * @throws Error if there is none
 */
export function resolveSchema(
  { $ref }: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
): JsonSchema | null {
  if ($ref === undefined) return null;
  const component = components[$ref.slice(prefix.length)];
  if (component === undefined) throw new Error(`There is no schema ${$ref}.`);
  return component;
}
