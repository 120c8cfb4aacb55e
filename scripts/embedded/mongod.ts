import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError } from '../../shared/platform/runtime/config-error.ts';
import { addCredentials, embeddedUser } from './credentials.ts';
import { findProgram } from './redis.ts';

const host = '127.0.0.1';
const replicaSet = 'rs0';

/**
 * @returns null if there is no mongod
 * @throws ConfigError if MONGOD_BIN is not a program
 */
export function findMongod(mongodBin: string | undefined, searchPath: string): string | null {
  if (mongodBin === undefined) return findProgram(['mongod'], searchPath);
  const [folder, name] = [mongodBin.replace(/\/[^/]*$/, ''), mongodBin.replace(/^.*\//, '')];
  const path = mongodBin.includes('/') ? findProgram([name], folder) : findProgram([mongodBin], searchPath);
  if (path === null) throw new ConfigError(`MONGOD_BIN is ${mongodBin}, which is not a program.`);
  return path;
}

export interface MongodOptions {
  readonly path: string;
  readonly port: number;
  readonly dir: string;
  readonly password: string;
  /** Shared secret of a replica set's members. It gives full access, so each start generates a new one. */
  readonly key: string;
  readonly keyFile: string;
}

export function mongodOptions(
  options: Pick<MongodOptions, 'path' | 'port' | 'password'> & { dataDir: string },
) {
  const { dataDir, ...launchOptions } = options;
  const key = randomBytes(48).toString('hex');
  return { ...launchOptions, key, dir: join(dataDir, 'mongod'), keyFile: join(dataDir, 'mongod.key') };
}

/**
 * Binds only to loopback. The key file makes mongod require authentication from every client, regardless of the users
 * that its data contains.
 */
export function mongodLaunch({ path, port, dir, key, keyFile }: MongodOptions) {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  // Remove the file first, because the mode is not applied to an existing file.
  rmSync(keyFile, { force: true });
  writeFileSync(keyFile, `${key}\n`, { mode: 0o600, flag: 'wx' });
  const args = ['--replSet', replicaSet, '--bind_ip', host, '--port', String(port), '--dbpath', dir];
  // Without the key file, mongod lets the first client that connects create a user without a password.
  const guards = ['--keyFile', keyFile, '--setParameter', 'enableLocalhostAuthBypass=false'];
  // Its Unix socket would be in /tmp, with a name that other users could create first.
  return { file: path, args: [...args, ...guards, '--nounixsocket', '--quiet'] };
}

export function mongodUrl({ port, password }: MongodOptions): string {
  const url = `mongodb://${host}:${port}/model-gateway?replicaSet=${replicaSet}&authSource=admin`;
  return addCredentials(url, password);
}

/**
 * Makes the server a replica set with one member, updates the member if the port has changed, and creates the user.
 * Resolves when the server accepts writes and the password works.
 * @throws Error when `signal` reports that the server exited
 */
export async function waitUntilPrimary(options: MongodOptions, signal: AbortSignal): Promise<void> {
  // Import it only here, because most machines have no mongod and the supervisor usually needs no driver.
  const { default: mongoose } = await import('mongoose');
  const address = `${host}:${options.port}`;
  // The server's internal user exists before any other. Its password is the key.
  const connection = mongoose.createConnection(`mongodb://${address}/admin?directConnection=true`, {
    serverSelectionTimeoutMS: 60_000,
    auth: { username: '__system', password: options.key },
    authSource: 'local',
  });
  try {
    await connection.asPromise();
    const db = connection.db!;
    await setMember(db, address);
    while (!(await db.command({ hello: 1 }))['isWritablePrimary']) {
      if (signal.aborted) throw new Error('it exited before it was ready');
      await delay(20);
    }
    await setUser(db, options.password);
  } finally {
    await connection.close();
  }
}

interface AdminDatabase {
  command(command: Record<string, unknown>): Promise<Record<string, unknown>>;
}

interface ReplicaConfig {
  version: number;
  members: { _id: number; host: string }[];
}

const notYetInitialized = 94;
const userNotFound = 11;

async function setMember(db: AdminDatabase, host: string): Promise<void> {
  try {
    const config = (await db.command({ replSetGetConfig: 1 }))['config'] as ReplicaConfig;
    if (config.members[0]?.host === host) return;
    const moved = { ...config, version: config.version + 1, members: [{ _id: 0, host }] };
    // Force it: with its old address, the server is not part of the replica set and accepts no ordinary command.
    await db.command({ replSetReconfig: moved, force: true });
  } catch (error) {
    if ((error as { code?: number }).code !== notYetInitialized) throw error;
    await db.command({ replSetInitiate: { _id: replicaSet, members: [{ _id: 0, host }] } });
  }
}

/** Sets the password at each start, so that the one in secrets.json applies regardless of earlier starts. */
async function setUser(db: AdminDatabase, password: string): Promise<void> {
  // Full permissions, so that backups and shells can use the same URL. The server contains only the gateway's data.
  const user = { pwd: password, roles: ['root'], mechanisms: ['SCRAM-SHA-256'] };
  try {
    await db.command({ updateUser: embeddedUser, ...user });
  } catch (error) {
    if ((error as { code?: number }).code !== userNotFound) throw error;
    await db.command({ createUser: embeddedUser, ...user });
  }
}
