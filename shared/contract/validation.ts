import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import type { Static, TSchema } from 'typebox';
import { AppError, type ValidationIssue } from './errors.ts';

/** A longer list would tell a caller no more, and a body of a million wrong items must not become a long answer. */
const maxIssues = 20;

const maxHttpsUrlLength = 2083;
const maxDataUriBytes = 20_000_000;
const dataUriStart = /^data:[a-z]+\/[a-z0-9.+-]+(?:;[a-z0-9=.+-]+)*;base64,/i;

/** An https URL or a base64 data URI of a picture; the base64 itself is checked by who decodes it. */
export function isImageUrl(value: string): boolean {
  if (value.startsWith('https://')) return value.length <= maxHttpsUrlLength && URL.canParse(value);
  const start = dataUriStart.exec(value.slice(0, 200));
  return start !== null && ((value.length - start[0].length) * 3) / 4 <= maxDataUriBytes;
}

const formatMessages: Record<string, string> = {
  'image-url': 'must be an https URL of at most 2083 characters or a base64 data URI of at most 20 MB',
};

function createAjv(coerceTypes: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors: true,
    useDefaults: true,
    coerceTypes,
    strictTypes: false,
    verbose: true,
  });
  // The plugin is CommonJS; its default export is the function itself at run time.
  (formatsPlugin as unknown as (instance: Ajv2020, names: string[]) => void)(ajv, [
    'date-time',
    'date',
    'uuid',
  ]);
  ajv.addFormat('image-url', { type: 'string', validate: isImageUrl });
  return ajv;
}

const bodyAjv = createAjv(false);
/** Query strings and environment variables are text: numbers and booleans are read from it. */
const textAjv = createAjv(true);

export type Validator<T> = (value: unknown) => T;

/**
 * A validator of a part of the request: fills in defaults in place and returns the value, typed.
 * @throws AppError `validation_failed`, with one issue a fault.
 */
export function compileValidator<T extends TSchema>(schema: T, part: 'body' | 'query'): Validator<Static<T>> {
  const validate: ValidateFunction = (part === 'body' ? bodyAjv : textAjv).compile(schema);
  return (value) => {
    if (validate(value)) return value as Static<T>;
    throw toValidationError(describeIssues(validate.errors ?? [], part));
  };
}

/** Like compileValidator, for values that are not a request: returns the issues instead of throwing them. */
export function compileChecker(
  schema: TSchema,
  from: 'json' | 'text',
): (value: unknown) => ValidationIssue[] {
  const validate = (from === 'json' ? bodyAjv : textAjv).compile(schema);
  return (value) => (validate(value) ? [] : describeIssues(validate.errors ?? []));
}

export function toValidationError(issues: readonly ValidationIssue[]): AppError {
  const first = issues[0];
  const where = first === undefined ? '' : first.loc.slice(1).join('.');
  const text =
    first === undefined ? 'The request is not valid.' : where === '' ? first.msg : `${where}: ${first.msg}`;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : '';
  return new AppError('validation_failed', { message: `${text}${more}`, issues });
}

function describeIssues(errors: readonly ErrorObject[], part?: 'body' | 'query'): ValidationIssue[] {
  // A failed union reports itself and each of its branches; where a branch of the value's own type failed, only that
  // branch tells the caller something, else only the union does.
  const unions = errors.filter((error) => error.keyword === 'anyOf');
  const isNoise = (error: ErrorObject): boolean => {
    if (error.keyword === 'anyOf') return hasDeeperFault(error, errors);
    return error.keyword === 'type' && unions.some((union) => isBranchOf(error, union));
  };
  const kept = errors.filter((error) => !isNoise(error));
  return kept.slice(0, maxIssues).map((error) => ({
    loc: [...(part === undefined ? [] : [part]), ...toLocation(error)],
    msg: describe(error),
    type: error.keyword,
  }));
}

const isBranchOf = (error: ErrorObject, union: ErrorObject): boolean =>
  error.instancePath === union.instancePath && error.schemaPath.startsWith(`${union.schemaPath}/`);

function hasDeeperFault(union: ErrorObject, errors: readonly ErrorObject[]): boolean {
  return errors.some(
    (error) =>
      error !== union &&
      error.schemaPath.startsWith(`${union.schemaPath}/`) &&
      !(error.instancePath === union.instancePath && error.keyword === 'type'),
  );
}

function toLocation(error: ErrorObject): (string | number)[] {
  const parts = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  if (error.keyword === 'required') parts.push(String(error.params['missingProperty']));
  return parts;
}

function describe(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'enum':
      return `must be one of: ${(params['allowedValues'] as unknown[]).map(String).join(', ')}`;
    case 'format':
      return formatMessages[String(params['format'])] ?? `must be a ${String(params['format'])}`;
    case 'type':
      return `must be ${[params['type']].flat().join(' or ')}`;
    case 'anyOf': {
      const branches = (error.schema as { type?: string }[]).flatMap((branch) => branch.type ?? []);
      return `must be ${branches.join(' or ')}`;
    }
    case 'minLength':
      return `must have at least ${String(params['limit'])} characters`;
    case 'maxLength':
      return `must have at most ${String(params['limit'])} characters`;
    case 'minItems':
      return `must have at least ${String(params['limit'])} items`;
    case 'maxItems':
      return `must have at most ${String(params['limit'])} items`;
    default:
      return error.message ?? 'is not valid';
  }
}
