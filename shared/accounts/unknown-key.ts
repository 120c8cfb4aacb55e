import { AppError } from '../contract/errors.ts';

/** The error for a key that belongs to no account. */
export const unknownKey = (): AppError =>
  new AppError('invalid_api_key', {
    message: 'This API key is unknown, or was replaced by another. Check which key the client sends.',
  });
