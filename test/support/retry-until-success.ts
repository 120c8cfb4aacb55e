import { inspect } from 'node:util';
import { waitFor } from './wait-for.ts';

/**
 * Retries a call until it succeeds. If a process is blocked for two seconds, for example because many tests start at
 * the same time, it reports a MongoDB outage although there is none.
 * @param call the call, which must be safe to repeat
 */
export async function retryUntilSuccess<T extends object>(what: string, call: () => Promise<T>): Promise<T> {
  let failure: unknown = null;
  return await waitFor(
    () => `${what}: ${inspect(failure)}`,
    async () => {
      try {
        return await call();
      } catch (error) {
        failure = error;
        return null;
      }
    },
  );
}
