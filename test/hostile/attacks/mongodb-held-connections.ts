import { holdDripping, openSockets } from '../../support/hostile-sockets.ts';
import { encodeMessage } from '../../support/mongo-wire-client.ts';

const count = 600;

/**
 * Keeps connections open that send nothing, half a message, a byte at intervals, or only `hello`, all together while
 * `whileHeld` runs.
 * @returns the number of connections still open at the end
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
