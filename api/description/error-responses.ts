import {
  createErrorExample,
  ErrorBody,
  TranslatedValidationErrorBody,
  ValidationErrorBody,
} from '../contract/error-bodies.ts';
import { errorKinds, type ErrorCode } from '../../shared/contract/error-kinds.ts';
import { cancelledJobStatus, errorKind } from '../../shared/contract/errors.ts';
import {
  acceptsSession,
  changesAsOperator,
  isAccountOperation,
  changesUserData,
  isWebOperation,
  hasUnsafeMethod,
  needsCsrfToken,
  translatesErrors,
  type Operation,
} from '../../shared/contract/operation.ts';
import type { JsonSchema, ResponseObject } from './description.ts';
import { headersOf } from './headers.ts';
import type { SchemaComponents } from './schema-components.ts';

/** Returns every error code that a call of the operation can return, in the order of `errorKinds`. */
export function findErrorCodes(operation: Operation): ErrorCode[] {
  const codes = new Set<ErrorCode>(operation.errors);
  const add = (...more: ErrorCode[]): void => more.forEach((code) => codes.add(code));
  add('internal_error');
  // Authentication looks up the key or session in a backing service.
  if (operation.auth === 'key')
    add('invalid_api_key', 'account_banned', 'address_not_allowed', 'key_expired', 'service_unavailable');
  if (acceptsSession(operation)) {
    add('unauthenticated', 'origin_refused', 'not_found');
    if (hasUnsafeMethod(operation)) add('csrf_failed');
  }
  if (isAccountOperation(operation)) add('rate_limit_exceeded');
  if (operation.auth === 'metrics') add('invalid_api_key');
  if (operation.auth === 'admin') {
    add('invalid_api_key', 'forbidden', 'not_found', 'too_many_attempts');
    add('rate_limit_exceeded', 'service_unavailable');
    if (changesAsOperator(operation)) add('csrf_failed', 'origin_refused');
    if (operation.pathParameters !== undefined) add('validation_failed');
  }
  if (operation.auth === 'web' || operation.auth === 'refresh') add('unauthenticated', 'service_unavailable');
  if (needsCsrfToken(operation)) add('csrf_failed');
  if (changesUserData(operation)) add('too_many_attempts');
  if (isWebOperation(operation) && hasUnsafeMethod(operation)) add('origin_refused');
  if (isWebOperation(operation) && operation.pathParameters !== undefined) add('validation_failed');
  if (takesBody(operation)) add('validation_failed', 'payload_too_large', 'unsupported_media_type');
  if (operation.query !== undefined) add('validation_failed');
  return (Object.keys(errorKinds) as ErrorCode[]).filter((code) => codes.has(code));
}

const takesBody = ({ body, formBody }: Operation): boolean => body !== undefined || formBody !== undefined;

/** Describes one response per status. Its schema lists the codes that this operation has with that status. */
export function describeErrors(
  operation: Operation,
  components: SchemaComponents,
): Record<string, ResponseObject> {
  const errors = findErrorCodes(operation).map((code) => ({ code, status: errorKind(code).status }));
  // 408 is for a body that arrives too slowly. HTTP's other special statuses are not specific to an operation.
  if (takesBody(operation)) errors.push({ code: 'deadline_exceeded', status: 408 });
  // For a request that its Idempotency-Key attaches to an existing job.
  if (operation.errors.includes('idempotency_conflict') && operation.permanentKey === undefined)
    errors.push({ code: 'job_cancelled', status: cancelledJobStatus });
  if (operation.servesRanges === true) {
    errors.push({ code: 'validation_failed', status: 412 }, { code: 'validation_failed', status: 416 });
  }
  const statuses = [...new Set(errors.map(({ status }) => status))].toSorted((a, b) => a - b);
  return Object.fromEntries(
    statuses.map((status) => {
      const ofStatus = errors.filter((error) => error.status === status).map(({ code }) => code);
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
  const isTranslated = translatesErrors(operation);
  const validationBody = isTranslated ? TranslatedValidationErrorBody : ValidationErrorBody;
  const body = components.rewrite((isValidation ? validationBody : ErrorBody) as JsonSchema, 'response');
  const only = { enum: codes };
  const narrowing = {
    properties: {
      error: { properties: { code: only } },
      ...(isValidation ? {} : { detail: { properties: { error: only } } }),
    },
  };
  // The text of a 404 names the resource that the example requests, so only the example shows it.
  const specificTextOf = (code: ErrorCode) =>
    code === 'not_found' ? undefined : operation.errorTexts?.[code];
  const textOf = (code: ErrorCode): string => specificTextOf(code)?.message ?? errorKind(code, status).en;
  return {
    description: codes.map((code) => `\`${code}\`: ${textOf(code)}`).join('\n\n'),
    headers: headersOf(operation, status),
    content: {
      'application/json': {
        schema: { allOf: [body, narrowing] },
        examples: Object.fromEntries(
          codes.map((code) => [
            code,
            {
              summary: textOf(code),
              value: createErrorExample(code, locateError(operation, code), {
                status,
                isTranslated,
                text: operation.errorTexts?.[code],
              }),
            },
          ]),
        ),
      },
    },
  };
}

/** Returns the location of an error with this code, for its example. */
function locateError({ body: json, formBody, query, pathParameters }: Operation, code: ErrorCode): string[] {
  const body = json ?? formBody;
  if (body === undefined && query === undefined) return ['path', ...namesOf(pathParameters).slice(0, 1)];
  if (body === undefined) return ['query', ...namesOf(query).slice(0, 1)];
  const names = namesOf(body);
  const matching = code.startsWith('model_') ? names.filter((name) => name === 'model') : names.slice(0, 1);
  return ['body', ...matching];
}

const namesOf = (schema: JsonSchema | undefined): string[] => Object.keys(schema?.properties ?? {});
