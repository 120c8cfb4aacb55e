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
import { removeUnhelpfulErrors } from './drop-noise.ts';
import { describeIssue, type TextFormats } from './describe-issue.ts';
import { AppError, prefixWithField, type ValidationIssue } from './errors.ts';
import { lateDefault, lateItems, lengthHint, wrongTypeHint } from './fields.ts';
import { isImageUrl } from './image-url.ts';
import { hasPartOfSecret, hasSecret } from './mask-secrets.ts';
import { isPlainText } from './plain-text.ts';
import { reasonTexts } from './reason-texts.ts';
import { readQuery } from './read-query.ts';
import { shorten } from '../platform/runtime/shorten.ts';

/** More issues would not help a caller, and a body with a million wrong items must not produce a long response. */
export const maxIssues = 20;

/** Returns whether a text has at least `limit` characters. A character is one or two UTF-16 code units. */
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

function createAjv(coerceTypes: boolean, allErrors: boolean): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
    useDefaults: true,
    coerceTypes,
    strictTypes: false,
    verbose: true,
    // Compiling the meta-schema takes longer than compiling all of our schemas, and every process would do it at
    // startup. A test checks the schemas instead.
    validateSchema: false,
  });
  // The plugin is CommonJS. Its default export is the function itself at run time.
  (formatsPlugin as unknown as (instance: Ajv2020, names: string[]) => void)(ajv, [
    'date-time',
    'date',
    'uuid',
  ]);
  ajv.addFormat('image-url', { type: 'string', validate: isImageUrl });
  ajv.addFormat('plain-text', { type: 'string', validate: isPlainText });
  ajv.addFormat('without-secret', { type: 'string', validate: (text) => !hasPartOfSecret(text) });
  ajv.addFormat('reason', { type: 'string', validate: (text) => isPlainText(text) && !hasSecret(text) });
  ajv.addFormat('not-blank', { type: 'string', validate: (text) => text.trim() !== '' });
  ajv.addKeyword(wrongTypeHint);
  ajv.addKeyword(lengthHint);
  ajv.addKeyword(lateItems);
  ajv.addKeyword(lateDefault);
  // Ajv's own keywords count every character even to check that a text is not empty, which takes a third of a second
  // for 80 MB.
  for (const keyword of ['minLength', 'maxLength']) ajv.removeKeyword(keyword);
  ajv.addKeyword(createLengthKeyword('minLength', (limit, text) => hasAtLeast(text, limit)));
  ajv.addKeyword(createLengthKeyword('maxLength', (limit, text) => !hasAtLeast(text, limit + 1)));
  return ajv;
}

/** Stops at the first error. Used for bodies too large to report every error. */
const firstErrorAjv = createAjv(false, false);
const allErrorsAjv = createAjv(false, true);

/** Bodies with at most this many values are checked for all errors. */
const fullCheckNodes = 5_000;

export type Validator<T> = (value: unknown) => T;

/**
 * Compiles a validator for a part of the request. It fills in defaults in place and returns the typed value.
 * @throws AppError `validation_failed`, with one issue per error
 */
export function compileValidator<T extends TSchema>(
  schema: T,
  part: 'body' | 'query' | 'path',
): Validator<Static<T>> {
  const validate: ValidateFunction = firstErrorAjv.compile(schema);
  // Compiled for the first invalid request, because most operations of a process never get one.
  let findAll: ValidateFunction | null = null;
  return (value) => {
    const misread = part === 'body' ? [] : readQuery(schema, value as Record<string, unknown>, part);
    if (misread.length > 0) throw toValidationError(misread);
    if (validate(value)) return value as Static<T>;
    let errors = validate.errors ?? [];
    if (hasFewNodes(value, fullCheckNodes)) {
      findAll ??= allErrorsAjv.compile(schema);
      if (!findAll(value)) errors = findAll.errors ?? [];
    }
    const relevant = removeUnhelpfulErrors(errors);
    throw toValidationError(describeIssues(relevant, part), relevant.length);
  };
}

/**
 * Like compileValidator, but for values that are not a request: returns the issues instead of throwing.
 * @param from `text` for environment variables and the like: numbers and booleans are parsed from text
 */
export function compileChecker(
  schema: TSchema,
  from: 'json' | 'text',
  formats: TextFormats = {},
): (value: unknown) => ValidationIssue[] {
  const ajv = from === 'json' ? allErrorsAjv : createAjv(true, true);
  for (const [name, { isValid }] of Object.entries(formats)) ajv.addFormat(name, isValid);
  const validate: ValidateFunction = ajv.compile(schema);
  return (value) =>
    validate(value) ? [] : describeIssues(removeUnhelpfulErrors(validate.errors ?? []), null, formats);
}

/** Returns whether a value contains at most `limit` nested values. Stops counting at the limit. */
function hasFewNodes(value: unknown, limit: number): boolean {
  const pending: unknown[] = [value];
  for (let visited = 0; pending.length > 0; visited++) {
    const node = pending.pop();
    if (Array.isArray(node) && node.length > limit) return false;
    if (typeof node !== 'object' || node === null) continue;
    for (const key in node) {
      pending.push((node as Record<string, unknown>)[key]);
      if (visited + pending.length > limit) return false;
    }
  }
  return true;
}

/**
 * Builds the error for these issues.
 * @param count total number of errors, if the issues are only the first ones
 */
export function toValidationError(issues: readonly ValidationIssue[], count = issues.length): AppError {
  const first = issues[0];
  if (first === undefined) return new AppError('validation_failed', { message: 'The request is not valid.' });
  const isOnly = count <= 1;
  return new AppError('validation_failed', {
    message: `${prefixWithField(first.loc, first.msg)}${isOnly ? '' : ` (and ${count - 1} more)`}`,
    ...(first.msgRu === undefined
      ? {}
      : {
          messageRu: `${prefixWithField(first.loc, first.msgRu)}${isOnly ? '' : ` (и ещё ${count - 1})`}`,
        }),
    issues,
  });
}

function describeIssues(
  errors: readonly ErrorObject[],
  part: 'body' | 'query' | 'path' | null,
  formats: TextFormats = {},
): ValidationIssue[] {
  return errors.slice(0, maxIssues).map((error) => ({
    loc: [...(part === null ? [] : [part]), ...toLocation(error)],
    ...(part === 'body' && error.instancePath === '' && error.keyword === 'type'
      ? notAnObject
      : describeIssue(error, formats)),
    type: error.keyword,
  }));
}

const notAnObject = { msg: reasonTexts.notAnObject.en, msgRu: reasonTexts.notAnObject.ru };

function toLocation(error: ErrorObject): (string | number)[] {
  const parts = error.instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : shorten(part)));
  if (error.keyword === 'required') parts.push(String(error.params['missingProperty']));
  return parts;
}
