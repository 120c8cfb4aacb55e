import { invalidField } from '../../../shared/contract/errors.ts';

/** No operation has a tenth as many. */
export const maxQueryParameters = 64;
export const maxQueryLength = 4_096;

/**
 * Parses the query of a request, in time proportional to its length. A repeated parameter becomes an array. Replaces
 * Koa's `context.query`, which searches all parameters again for each one and has no limit.
 * @param text what follows the question mark
 * @throws AppError `validation_failed` if the query is too long or has too many parameters; it is then not parsed
 */
export function readQueryString(text: string): Record<string, string | string[]> {
  if (text === '') return {};
  if (text.length > maxQueryLength) {
    throw invalidField(
      ['query'],
      `The query is longer than ${maxQueryLength} characters. Send only the parameters of this operation.`,
      {
        type: 'too_long',
        msgRu: `Строка запроса длиннее ${maxQueryLength} символов. Передавайте только параметры этой операции.`,
      },
    );
  }
  if (hasTooManyParameters(text)) {
    throw invalidField(
      ['query'],
      `The query has more than ${maxQueryParameters} parameters. Send only those of this operation.`,
      {
        type: 'too_many',
        msgRu: `В строке запроса больше ${maxQueryParameters} параметров. Передавайте только параметры этой операции.`,
      },
    );
  }
  const values = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(text)) {
    const earlier = values.get(name);
    if (earlier === undefined) values.set(name, value);
    else if (Array.isArray(earlier)) earlier.push(value);
    else values.set(name, [earlier, value]);
  }
  // Unlike an assignment, this also creates a property for a parameter named `__proto__`.
  return Object.fromEntries(values);
}

function hasTooManyParameters(text: string): boolean {
  let count = 1;
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) {
    count += 1;
    if (count > maxQueryParameters) return true;
  }
  return false;
}
