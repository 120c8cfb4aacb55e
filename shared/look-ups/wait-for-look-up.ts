import { within } from '../runtime/within.ts';
import { AppError } from '../contract/errors.ts';

/**
 * Waits a limited time for a look-up in the stores. The look-up continues, and its result is there when the caller
 * retries, so stores that take longer still serve callers that come back.
 * @param what name of the look-up in the log
 * @throws AppError `service_unavailable` when the time is over
 */
export async function waitForLookUp<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  return await within(ms, work, () => {
    throw tookTooLong(what, ms);
  });
}

/** @param what name of the look-up in the log */
export const tookTooLong = (what: string, ms: number): AppError =>
  new AppError('service_unavailable', { message: `${what} took longer than ${ms} ms` });
