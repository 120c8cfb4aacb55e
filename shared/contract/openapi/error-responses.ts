import { createErrorExample, ErrorBody, ValidationErrorBody } from '../error-bodies.ts';
import { errorKinds, type ErrorCode } from '../errors.ts';
import { asksForOwnAccount, type Operation } from '../operation.ts';
import type { JsonSchema, ResponseObject } from './description.ts';
import { headersOf } from './headers.ts';
import type { SchemaComponents } from './schema-components.ts';

/** Every code that a call of the operation can be answered with, in the order of the table of errors. */
export function findErrorCodes(operation: Operation): ErrorCode[] {
  const codes = new Set<ErrorCode>(operation.errors);
  const add = (...more: ErrorCode[]): void => more.forEach((code) => codes.add(code));
  add('internal_error');
  // Whose key or session it is, is looked up in a backing service.
  if (operation.auth === 'key') add('invalid_api_key', 'account_banned', 'service_unavailable');
  if (asksForOwnAccount(operation)) add('rate_limit_exceeded');
  if (operation.auth === 'web') add('unauthenticated', 'service_unavailable');
  if (operation.auth === 'web' && operation.method !== 'get') add('csrf_failed', 'origin_refused');
  if (operation.body !== undefined) add('validation_failed', 'payload_too_large', 'unsupported_media_type');
  if (operation.query !== undefined) add('validation_failed');
  return (Object.keys(errorKinds) as ErrorCode[]).filter((code) => codes.has(code));
}

/** One response a status, whose schema names the codes that this operation has of it. */
export function describeErrors(
  operation: Operation,
  components: SchemaComponents,
): Record<string, ResponseObject> {
  const codes = findErrorCodes(operation);
  const statuses = [...new Set(codes.map((code) => errorKinds[code].status))].toSorted((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = codes.filter((code) => errorKinds[code].status === status);
      return [String(status), describeStatus(operation, status, ofStatus, components)];
    }),
  );
}

function describeStatus(
  operation: Operation,
  status: number,
  codes: readonly ErrorCode[],
  components: SchemaComponents,
): ResponseObject {
  const isValidation = status === 422;
  const body = components.rewrite((isValidation ? ValidationErrorBody : ErrorBody) as JsonSchema, 'response');
  const only = { enum: codes };
  const narrowing = {
    properties: {
      error: { properties: { code: only } },
      ...(isValidation ? {} : { detail: { properties: { error: only } } }),
    },
  };
  return {
    description: codes.map((code) => `\`${code}\`: ${errorKinds[code].en}`).join('\n\n'),
    headers: headersOf(operation, status),
    content: {
      'application/json': {
        schema: { allOf: [body, narrowing] },
        examples: Object.fromEntries(
          codes.map((code) => [
            code,
            { summary: errorKinds[code].en, value: createErrorExample(code, locateFault(operation, code)) },
          ]),
        ),
      },
    },
  };
}

/** Where a fault of this code is found, in the example of it. */
function locateFault({ body, query }: Operation, code: ErrorCode): string[] {
  if (body === undefined) return ['query', ...namesOf(query).slice(0, 1)];
  const names = namesOf(body);
  const fitting = code.startsWith('model_') ? names.filter((name) => name === 'model') : names.slice(0, 1);
  return ['body', ...fitting];
}

const namesOf = (schema: JsonSchema | undefined): string[] => Object.keys(schema?.properties ?? {});
