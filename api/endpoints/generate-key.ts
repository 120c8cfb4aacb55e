import { AppError } from '../../shared/contract/errors.ts';

/**
 * Runs what replaces an API key. Refusals stay as they are.
 * @throws AppError `key_generation_failed` in place of any other error
 */
export async function generateKey<T>(replace: () => Promise<T>): Promise<T> {
  try {
    return await replace();
  } catch (error) {
    if (error instanceof AppError && error.status < 500) throw error;
    throw new AppError('key_generation_failed', { cause: error });
  }
}
