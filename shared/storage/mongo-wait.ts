import { AppError } from '../contract/errors.ts';

/**
 * Waits so long for what MongoDB was asked for, and no longer. The work itself goes on: what it finds is there for who
 * asks again, so that a MongoDB that takes longer than this serves callers who come back.
 * @throws AppError `service_unavailable` when the time is over
 */
export async function waitForMongo<T>(work: Promise<T>, waitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new AppError('service_unavailable', { message: `MongoDB has not answered for ${waitMs} ms` }));
    }, waitMs);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
