import type { FieldViolation } from './gemini-parse.ts';

/** Google's error for an invalid request. Its status is always 400, `INVALID_ARGUMENT`. */
export interface GeminiRequestError {
  readonly errorMessage: string;
  readonly details?: readonly object[];
}

export const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
};

/** Creates one error that lists all invalid fields. */
export function createFieldError(violations: readonly FieldViolation[]): GeminiRequestError {
  return {
    errorMessage: violations.map(({ description }) => description).join('\n'),
    details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }],
  };
}
