import {
  _,
  Ajv2020,
  type ErrorObject,
  type KeywordDefinition,
  type KeywordErrorDefinition,
  type ValidateFunction,
} from 'ajv/dist/2020.js';
import formatsPlugin from 'ajv-formats';
import type { Static, TSchema } from 'typebox';
import { dropNoise } from './drop-noise.ts';
import { AppError, type ValidationIssue } from './errors.ts';
import { lateItems, wrongTypeHint } from './fields.ts';
import { isImageUrl } from './image-url.ts';
import { isPlainText } from './plain-text.ts';
import { readQuery } from './read-query.ts';
import { shorten } from '../runtime/shorten.ts';

/** A longer list would tell a caller no more, and a body of a million wrong items must not become a long answer. */
export const maxIssues = 20;

const formatMessages: Record<string, string> = {
  date: 'must be a day of the calendar, written as YYYY-MM-DD',
  'image-url':
    'must be an https URL of at most 2083 characters or a base64 data URI of a picture (data:image/…) of at most 20 MB',
  'plain-text':
    'must be one line of text with at least one visible character, without control characters and characters that change the direction of the text',
};

/** Whether a text has so many characters; a character is one or two units of its length. */
function hasAtLeast(text: string, limit: number): boolean {
  if (text.length < limit) return false;
  if (text.length >= limit * 2) return true;
  let characters = 0;
  for (let at = 0; at < text.length; characters++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return characters >= limit;
}

function createLengthKeyword(
  keyword: 'minLength' | 'maxLength',
  isValid: (limit: number, text: string) => boolean,
): KeywordDefinition {
  const error: KeywordErrorDefinition = {
    message: 'has the wrong length',
    params: ({ schemaCode }) => _`{limit: ${schemaCode}}`,
  };
  return { keyword, type: 'string', schemaType: 'number', errors: false, error, validate: isValid };
}

/** What a text must be, beside what JSON Schema has words for. */
export interface TextFormat {
  readonly isValid: (text: string) => boolean;
  /** What is said of a text that is not. */
  readonly describe: (text: string) => string;
}
export type TextFormats = Readonly<Record<string, TextFormat>>;

function createAjv(coerceTypes: boolean, allErrors: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
    useDefaults: true,
    coerceTypes,
    strictTypes: false,
    verbose: true,
    // Compiling the meta-schema takes longer than compiling all of our schemas, and every process that starts would do
    // it. A test checks the schemas instead.
    validateSchema: false,
  });
  // The plugin is CommonJS; its default export is the function itself at run time.
  (formatsPlugin as unknown as (instance: Ajv2020, names: string[]) => void)(ajv, [
    'date-time',
    'date',
    'uuid',
  ]);
  ajv.addFormat('image-url', { type: 'string', validate: isImageUrl });
  ajv.addFormat('plain-text', { type: 'string', validate: isPlainText });
  ajv.addKeyword(wrongTypeHint);
  ajv.addKeyword(lateItems);
  // Ajv's own count every character of a text to find that it is not empty: a third of a second for 80 MB.
  for (const keyword of ['minLength', 'maxLength']) ajv.removeKeyword(keyword);
  ajv.addKeyword(createLengthKeyword('minLength', (limit, text) => hasAtLeast(text, limit)));
  ajv.addKeyword(createLengthKeyword('maxLength', (limit, text) => !hasAtLeast(text, limit + 1)));
  return ajv;
}

/** Stops at the first fault: what a body of a million faults is checked with. */
const firstFaultAjv = createAjv(false, false);
const allFaultsAjv = createAjv(false, true);

/** Values in a body up to which all of its faults are looked for. */
const fullCheckNodes = 5_000;

export type Validator<T> = (value: unknown) => T;

/**
 * A validator of a part of the request: fills in defaults in place and returns the value, typed.
 * @throws AppError `validation_failed`, with one issue a fault.
 */
export function compileValidator<T extends TSchema>(
  schema: T,
  part: 'body' | 'query' | 'path',
): Validator<Static<T>> {
  const validate: ValidateFunction = firstFaultAjv.compile(schema);
  const findAll: ValidateFunction = allFaultsAjv.compile(schema);
  return (value) => {
    const misread = part === 'body' ? [] : readQuery(schema, value as Record<string, unknown>, part);
    if (misread.length > 0) throw toValidationError(misread);
    if (validate(value)) return value as Static<T>;
    const thorough = hasFewNodes(value, fullCheckNodes) && !findAll(value);
    const faults = dropNoise((thorough ? findAll : validate).errors ?? []);
    throw toValidationError(describeIssues(faults, part), faults.length);
  };
}

/**
 * Like compileValidator, for values that are not a request: returns the issues instead of throwing them.
 * @param from `text` for environment variables and the like: numbers and booleans are read from it
 */
export function compileChecker(
  schema: TSchema,
  from: 'json' | 'text',
  formats: TextFormats = {},
): (value: unknown) => ValidationIssue[] {
  const ajv = from === 'json' ? allFaultsAjv : createAjv(true, true);
  for (const [name, { isValid }] of Object.entries(formats)) ajv.addFormat(name, isValid);
  const validate: ValidateFunction = ajv.compile(schema);
  return (value) => (validate(value) ? [] : describeIssues(dropNoise(validate.errors ?? []), null, formats));
}

/** Whether a value holds no more than so many values, looking at no more than those. */
function hasFewNodes(value: unknown, limit: number): boolean {
  const pending: unknown[] = [value];
  for (let seen = 0; pending.length > 0; seen++) {
    const node = pending.pop();
    if (Array.isArray(node) && node.length > limit) return false;
    if (typeof node !== 'object' || node === null) continue;
    for (const key in node) {
      pending.push((node as Record<string, unknown>)[key]);
      if (seen + pending.length > limit) return false;
    }
  }
  return true;
}

/** @param count how many faults there are, where the issues are only the first of them */
export function toValidationError(issues: readonly ValidationIssue[], count = issues.length): AppError {
  const first = issues[0];
  const where = first === undefined ? '' : first.loc.slice(1).join('.');
  const text =
    first === undefined ? 'The request is not valid.' : where === '' ? first.msg : `${where}: ${first.msg}`;
  const more = count > 1 ? ` (and ${count - 1} more)` : '';
  return new AppError('validation_failed', { message: `${text}${more}`, issues });
}

function describeIssues(
  errors: readonly ErrorObject[],
  part: 'body' | 'query' | 'path' | null,
  formats: TextFormats = {},
): ValidationIssue[] {
  return errors.slice(0, maxIssues).map((error) => ({
    loc: [...(part === null ? [] : [part]), ...toLocation(error)],
    msg: part === 'body' && error.instancePath === '' ? describeBody(error) : describe(error, formats),
    type: error.keyword,
  }));
}

function toLocation(error: ErrorObject): (string | number)[] {
  const parts = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : shorten(part)));
  if (error.keyword === 'required') parts.push(String(error.params['missingProperty']));
  return parts;
}

function describeBody(error: ErrorObject): string {
  return error.keyword === 'type' ? 'The body must be a JSON object.' : describe(error);
}

function describe(error: ErrorObject, formats: TextFormats = {}): string {
  const params = error.params as Record<string, unknown>;
  switch (error.keyword) {
    case 'required':
      return 'is required';
    case 'enum':
      return `must be one of: ${listValues(params['allowedValues'] as unknown[])}`;
    case 'format': {
      const own = formats[String(params['format'])];
      if (own !== undefined) return own.describe(String(error.data));
      return formatMessages[String(params['format'])] ?? `must be a ${String(params['format'])}`;
    }
    case 'type': {
      const hint = (error.parentSchema as { [wrongTypeHint]?: string })[wrongTypeHint];
      const types = [params['type']].flat().map((type) => nameType({ type: String(type) }));
      return `must be ${joinWords(types, 'or')}${hint === undefined ? '' : `: ${hint}`}`;
    }
    case 'anyOf':
      return `must be ${joinWords((error.schema as TypeSchema[]).map(nameType), 'or')}`;
    case 'minLength':
    case 'minItems':
      return params['limit'] === 1
        ? 'must not be empty'
        : `must have at least ${countParts(error.keyword, params['limit'])}`;
    case 'maxLength':
    case 'maxItems':
      return `must have at most ${countParts(error.keyword, params['limit'])}`;
    default:
      return error.message ?? 'is not valid';
  }
}

/** Null is what a field may be set to, and never what a caller who sent something else was looking for. */
function listValues(values: readonly unknown[]): string {
  const shown = values.filter((value) => value !== null);
  return (shown.length > 0 ? shown : values).map(String).join(', ');
}

function countParts(keyword: string, limit: unknown): string {
  const part = keyword.endsWith('Length') ? 'character' : 'item';
  return `${String(limit)} ${part}${limit === 1 ? '' : 's'}`;
}

interface TypeSchema {
  readonly type?: string;
  readonly items?: TypeSchema;
}

function nameType({ type = 'value', items }: TypeSchema): string {
  if (type === 'null') return type;
  const article = /^[aeiou]/.test(type) ? 'an' : 'a';
  return `${article} ${type}${type === 'array' && items?.type !== undefined ? ` of ${items.type}s` : ''}`;
}

/** "a, b or c" */
export function joinWords(words: readonly string[], last: 'and' | 'or'): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}
