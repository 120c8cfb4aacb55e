import { randomInt } from 'node:crypto';
import { checkPort } from '../../scripts/start/loopback.ts';

/**
 * A port for a server that may die and come back: one that no system gives to those who ask for any, so that nobody
 * takes it meanwhile, and no client that tries to reach it on loopback is given it for its own end.
 */
export async function findStablePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    try {
      await checkPort('127.0.0.1', port);
      return port;
    } catch {
      // Taken: another one is tried.
    }
  }
}
