import mongoose from 'mongoose';
import { AppError } from '../contract/errors.ts';
import { ConfigError } from '../runtime/config-error.ts';
import type { Logger } from '../runtime/logger.ts';
import { endWaitsOfClosedSockets } from './closed-sockets.ts';
import { checkDurability, durability } from './mongo-durability.ts';

const { MongoClient, MongoServerError, MongoError } = mongoose.mongo;
export type Database = mongoose.mongo.Db;
export type Collection<T extends mongoose.mongo.Document> = mongoose.mongo.Collection<T>;
export type FindCursor<T> = mongoose.mongo.FindCursor<T>;

export interface MongoConnection {
  readonly db: Database;
  /** Its pool is the process's only one: whatever else wants to talk to MongoDB does so over it. */
  readonly client: mongoose.mongo.MongoClient;
  close(): Promise<void>;
}

/** The database where the URL names none. */
const defaultDatabase = 'model_gateway';
const reconnectPauseMs = 250;

/**
 * One connection pool a process, opened by its first command: a process starts and serves the accounts it knows
 * while MongoDB is away. Commands fail within two seconds then.
 *
 * A server that hangs takes commands and keeps its connections. The driver's look at it every three seconds fails after two
 * more: that ends all commands that wait for it, and those that may be repeated are given to the primary that was elected
 * meanwhile, if there is one within two seconds. So commands end within seven seconds of its last answer. A server that
 * answers these looks and is slow keeps a command for 20 s, and reads are tried twice. Callers wait for neither: they are
 * told after five seconds at most (`inDatabaseTurn`), and after two or three before their requests begin
 * (`waitForLookUp`). The driver's own `timeoutMS` has no effect (7.8).
 *
 * int64 is read as bigint and bigint written as int64, so that money never passes through a double.
 */
export function openMongo(url: string, log: Logger): MongoConnection {
  const client = createClient(url);
  client.on('serverOpening', ({ address }) => {
    endWaitsOfClosedSockets(Number(address.slice(address.lastIndexOf(':') + 1)));
  });
  let away = false;
  client.on('serverHeartbeatFailed', (event) => {
    if (!away) log.warn({ reason: event.failure.message }, 'MongoDB is away; reconnecting');
    away = true;
  });
  client.on('serverHeartbeatSucceeded', () => {
    if (away) log.info('MongoDB is back');
    away = false;
  });
  client.on('serverDescriptionChanged', ({ address, newDescription }) => {
    if (newDescription.type !== 'Standalone') return;
    log.error(
      { address },
      'MONGODB_URL names a server that is no member of a replica set, and accounts cannot be loaded from it: start it with ' +
        '--replSet rs0, run rs.initiate() once, and add replicaSet=rs0 to MONGODB_URL',
    );
  });
  let isClosed = false;
  // The driver gives its first connection up for good where it finds no server in time: MongoDB may start later than this
  // process, or the process stand still for two seconds. Every command would fail from then on.
  let reconnecting: NodeJS.Timeout | null = null;
  const reconnect = (): void => {
    if (isClosed || reconnecting !== null) return;
    reconnecting = setTimeout(() => {
      reconnecting = null;
      // One that fails before it knows any server, as where a name is not resolved, closes nothing that tells so.
      if (!isClosed) client.connect().catch(reconnect);
    }, reconnectPauseMs).unref();
  };
  client.on('topologyClosed', reconnect);
  const named = new URL(url.replace(/^mongodb(\+srv)?:/, 'http:').replace(/,[^/]*/, '')).pathname.slice(1);
  return {
    db: client.db(named === '' ? defaultDatabase : named),
    client,
    async close() {
      isClosed = true;
      await client.close();
    },
  };
}

/** Connects to nothing yet. @throws ConfigError where the address is not one, or has an option that there is not, or must not be */
export function createClient(url: string): mongoose.mongo.MongoClient {
  checkDurability(url);
  try {
    return new MongoClient(url, {
      ...durability,
      serverSelectionTimeoutMS: 2_000,
      connectTimeoutMS: 2_000,
      heartbeatFrequencyMS: 3_000,
      socketTimeoutMS: 20_000,
      maxPoolSize: 20,
      useBigInt64: true,
      ignoreUndefined: true,
    });
  } catch (error) {
    throw new ConfigError(`MONGODB_URL is not valid: ${(error as Error).message}.`, { cause: error });
  }
}

/** MongoDB's code for a write that its disk did not take. */
export const outOfDiskSpaceCode = 14_031;

/** Of a command that took longer than its `maxTimeMS`. */
const tooSlowCode = 50;

/** MongoDB's code for a unique index's refusal. */
export const duplicateKeyCode = 11_000;

export function isDuplicateKey(error: unknown): boolean {
  return readDuplicateKey(error) !== null;
}

/** @returns the fields of the unique index that refused a write; null for every other failure */
export function readDuplicateKey(error: unknown): string[] | null {
  if (!(error instanceof MongoServerError) || error.code !== duplicateKeyCode) return null;
  return Object.keys((error['keyPattern'] as object | undefined) ?? {});
}

/**
 * Of a server that stops being primary, is shutting down, is not ready to be read, or does not reach the others
 * (NotWritablePrimary, PrimarySteppedDown, ShutdownInProgress, Interrupted…, NotPrimary…, ReadConcernMajorityNotAvailableYet,
 * ExceededTimeLimit, HostUnreachable, HostNotFound, NetworkTimeout, SocketException), and of a write that too few members
 * have taken in time (WriteConcernTimeout), and of a server that is in no replica set (NotAReplicaSet): whether it lasts is in doubt, so it is repeated. The driver labels them as
 * retryable only where it retries: a `deleteMany` and the making of an index it does not.
 */
const unavailableCodes: ReadonlySet<unknown> = new Set([
  10_107, 189, 91, 11_600, 11_602, 13_435, 13_436, 134, 262, 6, 7, 89, 9_001, 64, 123,
]);

/** Of a connection whose other end is gone. */
const cutConnectionCodes = new Set(['EPIPE', 'ECONNRESET']);

/**
 * Whether a failure of a command means that MongoDB is away, or too slow, as against a command of ours being refused. The
 * driver lets some errors of its sockets through as they are, such as that of a write to a connection that was just closed.
 */
export function isMongoAway(error: unknown): boolean {
  if (!(error instanceof MongoError)) return isCutConnection(error);
  if (!(error instanceof MongoServerError)) return true;
  // The driver dresses every failure of a batch as a server's, also where it found no server; what it was stands in it.
  const { errorResponse } = error as { errorResponse: unknown };
  if (errorResponse instanceof Error) return isMongoAway(errorResponse);
  return (
    error.code === tooSlowCode ||
    error.code === outOfDiskSpaceCode ||
    unavailableCodes.has(error.code) ||
    error.hasErrorLabel('RetryableWriteError')
  );
}

function isCutConnection(error: unknown): boolean {
  return error instanceof Error && 'code' in error && cutConnectionCodes.has(String(error.code));
}

/** Runs commands; an outage of MongoDB becomes `service_unavailable`: on a caller's path it is a 503, not a fault of ours. */
export async function callMongo<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (isMongoAway(error)) throw new AppError('service_unavailable', { cause: error });
    throw error;
  }
}
