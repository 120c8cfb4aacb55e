import { inspect } from 'node:util';
import { waitFor } from './wait-for.ts';

/**
 * Retries for as long as the call fails. A process that is blocked for two seconds, for example because it starts many
 * tests at the same time, mistakes that for a MongoDB outage.
 * @param ask must be safe to repeat
 */
export async function retryUntilSuccess<T extends object>(what: string, ask: () => Promise<T>): Promise<T> {
  let failure: unknown = null;
  return await waitFor(
    () => `${what}: ${inspect(failure)}`,
    async () => {
      try {
        return await ask();
      } catch (error) {
        failure = error;
        return null;
      }
    },
  );
}
