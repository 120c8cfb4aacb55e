import { encodeFrame } from './frame.ts';
import type { ErrorCode } from '../contract/error-kinds.ts';
import { AppError, isErrorCode, type ValidationIssue } from '../contract/errors.ts';

/** What an `error` frame says: the code, and the text a caller may read. */
export interface ErrorPayload {
  readonly code: ErrorCode;
  readonly message: string;
  /** The faults of a request that only a worker could find; absent where there are none. */
  readonly issues?: readonly ValidationIssue[];
}

/** Later than any attempt: the frame is the first of its own. */
const maxAttempt = 0xffff;

/** The last frame of a request that no worker ends: whichever attempt its readers follow, they take it. */
export function encodeLastError(requestId: string, { code, publicMessage: message }: AppError): Buffer {
  const payload = Buffer.from(JSON.stringify({ code, message } satisfies ErrorPayload));
  return encodeFrame({ requestId, attempt: maxAttempt, sequence: 0, kind: 'error', tokens: 0, payload });
}

export function readErrorPayload(payload: Buffer): AppError {
  const { code, message, issues } = JSON.parse(payload.toString('utf8')) as ErrorPayload;
  return new AppError(isErrorCode(code) ? code : 'internal_error', { message, issues });
}
