import { AppError } from '../contract/errors.ts';

/**
 * Waits so long for the work, and no longer. The work itself goes on.
 * @param onLate returns what stands in for the result when the time is over, or throws
 */
export async function within<T, L = never>(ms: number, work: Promise<T>, onLate: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<L>((resolve, reject) => {
    timer = setTimeout(() => {
      try {
        resolve(onLate());
      } catch (error) {
        reject(error);
      }
    }, ms);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits so long for something that is looked up in the stores. What it finds is there for the caller who asks again, so
 * that stores that take longer than this serve callers who come back.
 * @param what is waited for, as the log tells of it
 * @throws AppError `service_unavailable` when the time is over
 */
export async function waitForLookUp<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  return await within(ms, work, () => {
    throw tookTooLong(what, ms);
  });
}

/** @param what was waited for, as the log tells of it */
export const tookTooLong = (what: string, ms: number): AppError =>
  new AppError('service_unavailable', { message: `${what} took longer than ${ms} ms` });
