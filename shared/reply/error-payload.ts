import { AppError, isErrorCode, type ErrorCode } from '../contract/errors.ts';

/** What an `error` frame says: the code, and the text a caller may read. */
export interface ErrorPayload {
  readonly code: ErrorCode;
  readonly message: string;
}

export function readErrorPayload(payload: Buffer): AppError {
  const { code, message } = JSON.parse(payload.toString('utf8')) as ErrorPayload;
  return new AppError(isErrorCode(code) ? code : 'internal_error', { message });
}
