import type { TSchema } from 'typebox';
import type { ValidationIssue } from './errors.ts';

/** Rejects other notations (`0x10`, `1e2`, ` 1`, `+1`, `1.0`): they are most likely mistakes. */
const decimal = /^-?\d+$/;

interface Properties {
  readonly properties?: Readonly<Record<string, { readonly type?: unknown }>>;
}

/**
 * Converts, in place, the query or path parameters that the schema lists. Integers must be decimal digits, booleans `true` or
 * `false`, and no parameter may be repeated. Other parameters are ignored.
 * @returns the issues found; the schema checks ranges and formats
 */
export function readQuery(
  schema: TSchema,
  query: Record<string, unknown>,
  part: 'query' | 'path' = 'query',
): ValidationIssue[] {
  const issues: ValidationIssue[] = [];
  for (const [name, { type }] of Object.entries((schema as Properties).properties ?? {})) {
    const value = query[name];
    const addIssue = (type: string, msg: string, msgRu: string): void => {
      issues.push({ loc: [part, name], msg, msgRu, type });
    };
    if (Array.isArray(value)) {
      addIssue(
        'repeated',
        'is specified more than once: specify it once',
        'указано несколько раз: укажите один раз',
      );
    } else if (value === undefined) {
      continue;
    } else if (type === 'boolean') {
      if (value === 'true' || value === 'false') query[name] = value === 'true';
      else addIssue('type', 'must be true or false', 'должно быть true или false');
    } else if (type !== 'integer') {
      continue;
    } else if (typeof value === 'string' && decimal.test(value)) {
      query[name] = Number(value);
    } else {
      addIssue(
        'type',
        'must be a decimal integer, such as 2',
        'должно быть целым числом в десятичной записи, например 2',
      );
    }
  }
  return issues;
}
