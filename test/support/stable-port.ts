import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { checkPort } from '../../scripts/start/loopback.ts';

/** The first port, and the number of ports: all are outside the ephemeral range, and so are their reservations. */
const firstPort = 12_000;
const portCount = 10_000;

/**
 * A port for a server that a test kills and restarts. While nothing listens on it, it is still this process's own: the
 * system assigns it neither to another server nor to a client that connects on loopback, because it is outside the
 * ephemeral range, and other tests do not choose it, because it is reserved until this process or thread ends.
 */
export async function findStablePort(): Promise<number> {
  for (;;) {
    const port = randomInt(firstPort, firstPort + portCount);
    if (!(await reservePort(port))) continue;
    try {
      return await checkPort('127.0.0.1', port);
    } catch {
      // Another program, which does not reserve its ports, uses it.
    }
  }
}

/** Reserves a port by listening on another one, which belongs to it. @returns false if the port is already reserved */
export function reservePort(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const reservation = createServer();
    reservation.unref();
    reservation.once('error', () => resolve(false));
    reservation.listen(port + portCount, '127.0.0.1', () => resolve(true));
  });
}
