import { AppError, isErrorCode, type ErrorCode, type ValidationIssue } from '../contract/errors.ts';

/** What an `error` frame says: the code, and the text a caller may read. */
export interface ErrorPayload {
  readonly code: ErrorCode;
  readonly message: string;
  /** The faults of a request that only a worker could find; absent where there are none. */
  readonly issues?: readonly ValidationIssue[];
}

export function readErrorPayload(payload: Buffer): AppError {
  const { code, message, issues } = JSON.parse(payload.toString('utf8')) as ErrorPayload;
  return new AppError(isErrorCode(code) ? code : 'internal_error', { message, issues });
}
