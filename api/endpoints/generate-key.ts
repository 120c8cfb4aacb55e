import { AppError } from '../../shared/contract/errors.ts';

/**
 * Runs the replacement of an API key.
 * @throws AppError errors for the caller unchanged; `key_generation_failed` for any other error
 */
export async function generateKey<T>(replace: () => Promise<T>): Promise<T> {
  try {
    return await replace();
  } catch (error) {
    if (error instanceof AppError && error.status < 500) throw error;
    throw new AppError('key_generation_failed', { cause: error });
  }
}
