import { MongoError, refuse } from '../errors.ts';

const onlyInPcre = /\[\[:|\(\?[a-zA-Z#>|(+-]|[*+?}]\+/;

/**
 * A MongoDB (PCRE) pattern as a JavaScript one. With the `u` flag JavaScript rejects escapes it does not know instead
 * of reading them as letters; what both accept but read differently is refused.
 */
export function compileRegex(pattern: string, options: string): RegExp {
  if (onlyInPcre.test(pattern)) throw refuse(`the regular expression /${pattern}/`, 'BadValue');
  const unknown = Array.from(options).find((option) => !'imsu'.includes(option));
  if (unknown !== undefined) throw refuse(`the regular expression option ${unknown}`, 'BadValue');
  try {
    return new RegExp(pattern, [...new Set(`${options}u`)].join(''));
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new MongoError('BadValue', `Regular expression is invalid: ${cause.message}`);
  }
}
