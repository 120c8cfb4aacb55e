import { AppError } from '../../../shared/contract/errors.ts';
import { shorten } from '../../../shared/platform/runtime/shorten.ts';

/**
 * Headers that close the connection. Used after an invalid request, because client and server may disagree about where
 * it ends.
 */
export const closeHeaders = { connection: 'close' };

/** Creates the error for an invalid request, with the status that HTTP defines and the closest of our error codes. */
export const malformed = (message: string, status = 400): AppError =>
  new AppError('validation_failed', { status, message, headers: closeHeaders });

export const unknownVersion = (): AppError =>
  malformed('This HTTP version is not supported. Use HTTP/1.1.', 505);

export const unknownMethod = (method: string): AppError =>
  new AppError('method_not_allowed', {
    status: 501,
    message: `The method ${shorten(method)} is not supported. See /docs for the method of each endpoint.`,
    headers: closeHeaders,
  });
