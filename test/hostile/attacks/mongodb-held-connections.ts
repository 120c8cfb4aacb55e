import { holdDripping, openSockets } from '../../support/hostile-sockets.ts';
import { encodeMessage } from '../../support/mongo-wire-client.ts';

const count = 600;

/**
 * Connections that say nothing, half a message, a byte now and then, or `hello` and no more, all at once and for as long
 * as `whileHeld` takes.
 * @returns how many were still there when it was done
 */
export async function holdMongoConnections({
  mongodbUrl,
  whileHeld,
}: {
  mongodbUrl: string;
  whileHeld: () => Promise<void>;
}): Promise<number> {
  const sockets = await openSockets(mongodbUrl, count);
  const hello = encodeMessage({ hello: 1, $db: 'admin' });
  const openings = [Buffer.alloc(0), hello.subarray(0, 20), hello.subarray(0, 1), hello];
  for (const [i, socket] of sockets.entries()) {
    socket.resume();
    socket.write(openings[i % openings.length]!);
  }
  const isDripping = (i: number): boolean => i % openings.length === 2;
  return await holdDripping(sockets, { byte: '\0', isDripping }, whileHeld);
}
