import { encodeFrame } from './frame.ts';
import type { ErrorCode } from '../../contract/error-kinds.ts';
import { AppError, isErrorCode, type ErrorDetails } from '../../contract/errors.ts';

/** The payload of an `error` frame: the code, and a message that the caller may read. */
export interface ErrorPayload extends ErrorDetails {
  readonly code: ErrorCode;
  readonly message: string;
  /** Set if the request may have been charged. */
  readonly isPossiblyCharged?: true;
}

/** Higher than any real attempt, so the frame is the first of a new attempt. */
const maxAttempt = 0xffff;

/**
 * Encodes the final frame of a request that no worker finishes. Readers accept it regardless of the attempt that they
 * are reading.
 */
export function encodeLastError(requestId: string, error: AppError): Buffer {
  const { code, publicMessage: message, possiblyChargedId, isExposed, headers } = error;
  const content: ErrorPayload = {
    code,
    message,
    ...(isExposed && { expose: true }),
    ...(Object.keys(headers).length > 0 && { headers }),
    ...(possiblyChargedId !== null && { isPossiblyCharged: true }),
  };
  const payload = Buffer.from(JSON.stringify(content));
  return encodeFrame({ requestId, attempt: maxAttempt, sequence: 0, kind: 'error', tokens: 0, payload });
}

/** @param requestId the request whose frame it is */
export function readErrorPayload(payload: Buffer, requestId: string): AppError {
  const { code, message, issues, headers, expose, isPossiblyCharged } = JSON.parse(
    payload.toString('utf8'),
  ) as ErrorPayload;
  return new AppError(isErrorCode(code) ? code : 'internal_error', {
    message,
    issues,
    headers,
    expose,
    possiblyChargedId: isPossiblyCharged === true ? requestId : undefined,
  });
}
