import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { setInternalBufferSize } from 'bson';
import { createThrottledWarning } from '../../../shared/runtime/throttled-warning.ts';
import { addCredentials, embeddedUser } from '../credentials.ts';
import { UnauthenticatedSockets, type UnauthenticatedLimits } from '../unauthenticated-sockets.ts';
import { deriveCredential } from './auth/scram.ts';
import { Connection, type ConnectionSurroundings } from './connection.ts';
import { Cursors } from './cursors.ts';
import { expireDocuments } from './expire.ts';
import { forgetOldAnswers } from './retryable-writes.ts';
import { ServerStatus } from './server-status.ts';
import { Store } from './storage/store.ts';
import { maxMessageBytes } from './wire.ts';

export type EmbeddedMongoOptions = UnauthenticatedLimits & {
  /** Where the data lies; made if missing, and used by one process at a time. */
  dir: string;
  /** What opens it, of visible ASCII; made up unless given. */
  password?: string;
  /** 0, which is the default, takes a free one. */
  port?: number;
  host?: string;
  /** False acknowledges writes before they are on disk: for tests. */
  sync?: boolean;
  /** Told where the data can be neither read nor written any more before a new start; by default, nobody is. */
  onBroken?: (error: Error) => void;
  /** How often TTL indexes are obeyed; a minute unless set. */
  ttlIntervalMs?: number;
};

export type EmbeddedMongo = {
  /** With the password, for clients. */
  url: string;
  /** Without it, to be printed. */
  endpoint: string;
  /** Obeys the TTL indexes now, and returns how many documents were removed. */
  expireDocuments(): Promise<number>;
  /** Ends the connections, lets writes under way reach the disk, and gives the directory free. */
  close(): Promise<void>;
};

/** How long a client may take to read its last answer at a stop. */
const closeGraceMs = 2_000;

/** Starts a server that speaks MongoDB's protocol, as much of it as the product needs, and refuses the rest. */
export async function startEmbeddedMongo({
  dir,
  password = randomBytes(24).toString('base64url'),
  port = 0,
  host = '127.0.0.1',
  sync = true,
  onBroken = () => undefined,
  ttlIntervalMs = 60_000,
  ...limits
}: EmbeddedMongoOptions): Promise<EmbeddedMongo> {
  // A document may grow past its 16 MB while it is changed, and is refused only then.
  setInternalBufferSize(maxMessageBytes);
  const credential = await deriveCredential(embeddedUser, password);
  const store = new Store(dir, sync, onBroken);
  const status = new ServerStatus();
  const unauthenticated = new UnauthenticatedSockets(limits);
  const warn = createThrottledWarning((line) => console.error(line));
  const surroundings = { store, cursors: new Cursors(), status, credential, unauthenticated, warn };
  const connections = new Set<Connection>();
  const server = createServer((socket) => {
    const connection = new Connection(surroundings, socket);
    connections.add(connection);
    socket.once('close', () => connections.delete(connection));
  });
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    await store.close();
    throw error;
  }
  // A connection that could not be accepted, as no file was left for it, is no reason to end.
  server.on('error', (error) => warn(`The embedded MongoDB cannot take a connection: ${error.message}`));
  status.address = `${host}:${(server.address() as AddressInfo).port}`;

  let tidied = Promise.resolve();
  const timer = setInterval(() => {
    tidied = tidy(tidied, surroundings);
  }, ttlIntervalMs);
  timer.unref();

  const endpoint = `mongodb://${status.address}/?directConnection=true&replicaSet=${status.setName}&authSource=admin`;
  return {
    url: addCredentials(endpoint, password),
    endpoint,
    expireDocuments: () => expireDocuments(store),
    async close() {
      clearInterval(timer);
      server.close();
      unauthenticated.closeAll();
      const grace = setTimeout(() => {
        for (const connection of connections) connection.destroy();
      }, closeGraceMs);
      await Promise.all(Array.from(connections, (connection) => connection.end()));
      clearTimeout(grace);
      await tidied;
      await store.close();
    },
  };
}

/** What time brings: expired documents go, and with them forgotten cursors and the answers to ended sessions. */
async function tidy(previous: Promise<void>, { store, cursors }: ConnectionSurroundings): Promise<void> {
  await previous;
  try {
    cursors.closeIdle();
    await expireDocuments(store);
    await store.write(() => forgetOldAnswers(store));
  } catch (error) {
    console.error('The embedded MongoDB could not expire documents:', error);
  }
}
