import { AppError } from '../../shared/contract/errors.ts';
import { shorten } from '../../shared/runtime/shorten.ts';

/** Client and server may disagree where such a request ends. */
export const closing = { connection: 'close' };

/** Creates the error for an invalid request. The status is HTTP's; the code is the nearest of the closed set. */
export const malformed = (message: string, status = 400): AppError =>
  new AppError('validation_failed', { status, message, headers: closing });

export const unknownVersion = (): AppError =>
  malformed('This version of HTTP is not spoken here. Use HTTP/1.1.', 505);

export const unknownMethod = (method: string): AppError =>
  new AppError('method_not_allowed', {
    status: 501,
    message: `The method ${shorten(method)} is not known here. Use GET, POST or PUT, as /docs says of each address.`,
    headers: closing,
  });
