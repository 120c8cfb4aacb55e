import { randomInt } from 'node:crypto';
import { checkPort } from '../../scripts/start/loopback.ts';

/**
 * A port for a server that may die and come back. It is outside the ephemeral range, so that nobody takes it in
 * between, and no client connecting to it on loopback gets it as its own port.
 */
export async function findStablePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    try {
      await checkPort('127.0.0.1', port);
      return port;
    } catch {
      // Taken; try another one.
    }
  }
}
