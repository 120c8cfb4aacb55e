import { AppError } from '../contract/errors.ts';

/** The error for a key that belongs to no account. */
export const unknownKey = (): AppError =>
  new AppError('invalid_api_key', {
    message: 'This API key does not exist or has been replaced. Check the key that your client sends.',
  });
