import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { setInternalBufferSize } from 'bson';
import { createThrottledWarning } from '../../../shared/platform/runtime/throttled-warning.ts';
import { addCredentials, embeddedUser } from '../credentials.ts';
import { UnauthenticatedSockets, type UnauthenticatedLimits } from '../unauthenticated-sockets.ts';
import { deriveCredential } from './auth/scram.ts';
import { Connection, type ConnectionEnvironment } from './connection.ts';
import { Cursors } from './cursors.ts';
import { expireDocuments } from './expire.ts';
import { deleteOldResults } from './retryable-writes.ts';
import { ServerStatus } from './server-status.ts';
import { Store } from './storage/store.ts';
import { maxMessageBytes } from './wire.ts';

export type EmbeddedMongoOptions = UnauthenticatedLimits & {
  /** Data directory. Created if missing, and used by one process at a time. */
  dir: string;
  /** Visible ASCII. Random by default. */
  password?: string;
  /** 0, the default, selects a free port. */
  port?: number;
  host?: string;
  /** If false, writes are acknowledged before they are on disk. For tests. */
  sync?: boolean;
  /** Called when the data can be neither read nor written until a restart. Does nothing by default. */
  onBroken?: (error: Error) => void;
  /** How often TTL indexes are applied. Defaults to a minute. */
  ttlIntervalMs?: number;
};

export type EmbeddedMongo = {
  /** Includes the password, for clients. */
  url: string;
  /** Without the password, for printing. */
  endpoint: string;
  /** Applies the TTL indexes now, and returns how many documents were removed. */
  expireDocuments(): Promise<number>;
  /** Closes the connections, waits until running writes are on disk, and releases the directory. */
  close(): Promise<void>;
};

/** How long a client may take to read its last response during a stop. */
const closeGraceMs = 2_000;

/** Starts a server that implements only the part of MongoDB's protocol that the product needs. Rejects the rest. */
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
  // A document may exceed 16 MB while it is being changed, and is rejected only afterwards.
  setInternalBufferSize(maxMessageBytes);
  const credential = await deriveCredential(embeddedUser, password);
  const store = new Store(dir, sync, onBroken);
  const status = new ServerStatus();
  const unauthenticated = new UnauthenticatedSockets(limits);
  const warn = createThrottledWarning((line) => console.error(line));
  const environment = { store, cursors: new Cursors(), status, credential, unauthenticated, warn };
  const connections = new Set<Connection>();
  const server = createServer((socket) => {
    const connection = new Connection(environment, socket);
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
  // Do not crash when a connection cannot be accepted, for example because no file descriptor is left.
  server.on('error', (error) => warn(`The embedded MongoDB cannot accept a connection: ${error.message}`));
  status.address = `${host}:${(server.address() as AddressInfo).port}`;

  let cleanup = Promise.resolve();
  const timer = setInterval(() => {
    cleanup = cleanUp(cleanup, environment);
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
      await cleanup;
      await store.close();
    },
  };
}

/** Periodic cleanup: removes expired documents, abandoned cursors and the saved results of ended sessions. */
async function cleanUp(previous: Promise<void>, { store, cursors }: ConnectionEnvironment): Promise<void> {
  await previous;
  try {
    cursors.closeIdle();
    await expireDocuments(store);
    await store.write(() => deleteOldResults(store));
  } catch (error) {
    console.error('The embedded MongoDB could not expire documents:', error);
  }
}
