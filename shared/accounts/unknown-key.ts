import { AppError } from '../contract/errors.ts';

/** A key was sent, and it opens no account. */
export const unknownKey = (): AppError =>
  new AppError('invalid_api_key', {
    message: 'This API key is unknown, or was replaced by another. Check which key the client sends.',
  });
