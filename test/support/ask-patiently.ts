import { inspect } from 'node:util';
import { waitFor } from './wait-for.ts';

/**
 * Asks again for as long as asking fails. A process that stands still for two seconds, as one that begins many tests at
 * once may, takes MongoDB for away.
 * @param ask does no harm when it is done twice
 */
export async function askPatiently<T extends object>(what: string, ask: () => Promise<T>): Promise<T> {
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
