import type { FieldViolation } from './gemini-parse.ts';

/** A refusal by Google: always a 400 with `INVALID_ARGUMENT`. */
export interface GeminiRefusal {
  readonly refuses: string;
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

/** Reports all invalid fields at once. */
export function refuseFields(violations: readonly FieldViolation[]): GeminiRefusal {
  return {
    refuses: violations.map(({ description }) => description).join('\n'),
    details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations }],
  };
}
