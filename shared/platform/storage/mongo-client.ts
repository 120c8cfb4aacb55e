// decision 0001
import mongoose from 'mongoose';
import { AppError } from '../../contract/errors.ts';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import { endClosedSocketWaits } from './closed-sockets.ts';
import { checkDurability, durability } from './mongo-durability.ts';

const { MongoClient, MongoServerError, MongoError } = mongoose.mongo;
export type Database = mongoose.mongo.Db;
export type Collection<T extends mongoose.mongo.Document> = mongoose.mongo.Collection<T>;
export type FindCursor<T> = mongoose.mongo.FindCursor<T>;

export interface MongoConnection {
  readonly db: Database;
  /** The process's only connection pool. Everything that talks to MongoDB uses it. */
  readonly client: mongoose.mongo.MongoClient;
  close(): Promise<void>;
}

export interface MongoWaits {
  /** How long a command waits for a server, in milliseconds. */
  readonly serverMs?: number;
}

/** The database if the URL does not specify one. */
const defaultDatabase = 'model_gateway';
const reconnectPauseMs = 250;

/**
 * Opens one connection pool per process. The first command connects it, so a process can start while MongoDB is
 * unavailable and serve the accounts that it knows. Commands then fail within two seconds, unless `waits` says otherwise.
 *
 * How long a command can take:
 * - A server that hangs accepts commands and keeps its connections open. The driver checks it every three seconds, and
 *   the check fails after two more. That ends all commands waiting for the server. Retryable commands go to the newly
 *   elected primary, if there is one within two seconds. So commands end within seven seconds of the server's last
 *   reply.
 * - With a server that passes these checks but is slow, a command can take 20 s, and reads are tried twice.
 *
 * Callers do not wait that long: they get an error after five seconds at most (`inDatabaseTurn`), and after two or
 * three before their requests start (`waitForLookUp`). The driver's own `timeoutMS` has no effect (7.8).
 *
 * int64 is read as bigint, and bigint is written as int64, so that money is never converted to a double.
 */
export function openMongo(url: string, log: Logger, waits: MongoWaits = {}): MongoConnection {
  const client = createClient(url, waits);
  client.on('serverOpening', ({ address }) => {
    endClosedSocketWaits(Number(address.slice(address.lastIndexOf(':') + 1)));
  });
  let isUnavailable = false;
  client.on('serverHeartbeatFailed', (event) => {
    if (!isUnavailable) log.warn({ reason: event.failure.message }, 'MongoDB unavailable; reconnecting');
    isUnavailable = true;
  });
  client.on('serverHeartbeatSucceeded', () => {
    if (isUnavailable) log.info('MongoDB available again');
    isUnavailable = false;
  });
  client.on('serverDescriptionChanged', ({ address, newDescription }) => {
    if (newDescription.type !== 'Standalone') return;
    log.error(
      { address },
      'the server at MONGODB_URL is not a member of a replica set, so accounts cannot be loaded from it: start it with ' +
        '--replSet rs0, run rs.initiate() once, and add replicaSet=rs0 to MONGODB_URL',
    );
  });
  let isClosed = false;
  // If the driver finds no server in time for its first connection, it never tries again, and without this reconnect
  // every later command would fail. That happens if MongoDB starts later than this process, or if the process freezes
  // for two seconds.
  let reconnecting: NodeJS.Timeout | null = null;
  const reconnect = (): void => {
    if (isClosed || reconnecting !== null) return;
    reconnecting = setTimeout(() => {
      reconnecting = null;
      // If connecting fails before the client knows a server, for example because of an unresolvable name,
      // `topologyClosed` is not emitted.
      if (!isClosed) client.connect().catch(reconnect);
    }, reconnectPauseMs).unref();
  };
  client.on('topologyClosed', reconnect);
  const database = new URL(url.replace(/^mongodb(\+srv)?:/, 'http:').replace(/,[^/]*/, '')).pathname.slice(1);
  return {
    db: client.db(database === '' ? defaultDatabase : database),
    client,
    async close() {
      isClosed = true;
      await client.close();
    },
  };
}

/**
 * Creates a client without connecting.
 * @throws ConfigError if the URL is invalid, or has an unknown or forbidden option
 */
export function createClient(url: string, { serverMs = 2_000 }: MongoWaits = {}): mongoose.mongo.MongoClient {
  checkDurability(url);
  try {
    return new MongoClient(url, {
      ...durability,
      serverSelectionTimeoutMS: serverMs,
      connectTimeoutMS: serverMs,
      heartbeatFrequencyMS: 3_000,
      socketTimeoutMS: 20_000,
      maxPoolSize: 20,
      // For metrics.
      monitorCommands: true,
      useBigInt64: true,
      ignoreUndefined: true,
    });
  } catch (error) {
    throw new ConfigError(`MONGODB_URL is not valid: ${(error as Error).message}.`, { cause: error });
  }
}

/** MongoDB's code for a write that failed because the disk is full. */
export const outOfDiskSpaceCode = 14_031;

/** MongoDB's code for a command that exceeded its `maxTimeMS`. */
const tooSlowCode = 50;

/** MongoDB's code for a duplicate key in a unique index. */
export const duplicateKeyCode = 11_000;

export function isDuplicateKey(error: unknown): boolean {
  return readDuplicateKey(error) !== null;
}

/** Whether an index exists already, with other options. */
export const isIndexConflict = (error: unknown): boolean =>
  error instanceof MongoServerError && error.code === 85;

/** @returns the fields of the unique index that rejected a write; null for any other failure */
export function readDuplicateKey(error: unknown): string[] | null {
  if (!(error instanceof MongoServerError) || error.code !== duplicateKeyCode) return null;
  return Object.keys((error['keyPattern'] as object | undefined) ?? {});
}

/**
 * Codes of a server that is stepping down as primary, is shutting down, is not ready for reads, or cannot reach the
 * others (NotWritablePrimary, PrimarySteppedDown, ShutdownInProgress, Interrupted…, NotPrimary…,
 * ReadConcernMajorityNotAvailableYet, ExceededTimeLimit, HostUnreachable, HostNotFound, NetworkTimeout,
 * SocketException), of a write that too few members acknowledged in time (WriteConcernTimeout), and of a server that is
 * not in a replica set (NotAReplicaSet). It is uncertain whether the write will survive, so it is repeated. The driver
 * labels these errors as retryable only for commands that it retries itself, which excludes `deleteMany` and index
 * creation.
 */
const unavailableCodes: ReadonlySet<unknown> = new Set([
  10_107, 189, 91, 11_600, 11_602, 13_435, 13_436, 134, 262, 6, 7, 89, 9_001, 64, 123,
]);

/** Error codes of a connection that the other side has closed. */
const lostConnectionCodes = new Set(['EPIPE', 'ECONNRESET']);

/**
 * Returns whether a command failed because MongoDB is unavailable or too slow, as opposed to rejecting the command.
 * The driver passes some socket errors through unchanged, such as that of a write to a connection that was just closed.
 */
export function isMongoUnavailable(error: unknown): boolean {
  if (!(error instanceof MongoError)) return isLostConnection(error);
  if (!(error instanceof MongoServerError)) return true;
  // The driver reports every failure of a batch as a server error, even if it found no server. That error contains the
  // real one.
  const { errorResponse } = error as { errorResponse: unknown };
  if (errorResponse instanceof Error) return isMongoUnavailable(errorResponse);
  return (
    error.code === tooSlowCode ||
    error.code === outOfDiskSpaceCode ||
    unavailableCodes.has(error.code) ||
    error.hasErrorLabel('RetryableWriteError')
  );
}

/** Whether the driver reported the failure: an error of MongoDB, or of a connection to it. */
export function isMongoError(error: unknown): boolean {
  return error instanceof MongoError;
}

function isLostConnection(error: unknown): boolean {
  return error instanceof Error && 'code' in error && lostConnectionCodes.has(String(error.code));
}

/** Runs commands. @throws AppError `service_unavailable` if MongoDB is unavailable */
export async function callMongo<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (isMongoUnavailable(error)) throw new AppError('service_unavailable', { cause: error });
    throw error;
  }
}
