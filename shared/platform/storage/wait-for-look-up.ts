import { within } from '../runtime/within.ts';
import { AppError } from '../../contract/errors.ts';

/**
 * Waits a limited time for a lookup in the stores. The lookup continues after that, so its result is available
 * when the caller retries.
 * @param what name of the lookup in the log
 * @throws AppError `service_unavailable` when the time runs out
 */
export async function waitForLookUp<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  return await within(ms, work, () => {
    throw tookTooLong(what, ms);
  });
}

/** @param what name of the lookup in the log */
export const tookTooLong = (what: string, ms: number): AppError =>
  new AppError('service_unavailable', { message: `${what} took longer than ${ms} ms` });
