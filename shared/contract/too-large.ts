import { AppError } from './errors.ts';

/** @param what name of the oversized part, for the message */
export function tooLarge(limitBytes: number, what = 'The body'): AppError {
  const size = limitBytes >= 1_000_000 ? `${limitBytes / 1_000_000} MB` : `${limitBytes / 1_000} KB`;
  return new AppError('payload_too_large', {
    message: `${what} is larger than ${size}, the limit of this endpoint. Send a smaller request.`,
  });
}
