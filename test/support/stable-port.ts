import { randomInt } from 'node:crypto';
import { checkPort } from '../../scripts/start/loopback.ts';

/**
 * A port for a server that a test kills and restarts. It is outside the ephemeral range, so that the system assigns it
 * neither to another server in the meantime, nor to a client that connects on loopback.
 */
export async function findStablePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    try {
      await checkPort('127.0.0.1', port);
      return port;
    } catch {
      // The port is in use; try another one.
    }
  }
}
