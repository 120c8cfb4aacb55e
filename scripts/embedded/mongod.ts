import { mkdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError } from '../../shared/runtime/config.ts';
import { findProgram } from './redis.ts';

const replicaSet = 'rs0';

/** @returns null where there is no mongod. @throws ConfigError where MONGOD_BIN names none */
export function findMongod(mongodBin: string | undefined, searchPath: string): string | null {
  if (mongodBin === undefined) return findProgram(['mongod'], searchPath);
  const [folder, name] = [mongodBin.replace(/\/[^/]*$/, ''), mongodBin.replace(/^.*\//, '')];
  const path = mongodBin.includes('/') ? findProgram([name], folder) : findProgram([mongodBin], searchPath);
  if (path === null) throw new ConfigError(`MONGOD_BIN is ${mongodBin}, which is no program.`);
  return path;
}

export function mongodLaunch(path: string, port: number, dir: string) {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const args = [
    '--replSet',
    replicaSet,
    '--bind_ip',
    '127.0.0.1',
    '--port',
    String(port),
    '--dbpath',
    dir,
    '--quiet',
  ];
  return { file: path, args };
}

export function mongodUrl(port: number): string {
  return `mongodb://127.0.0.1:${port}/model-gateway?replicaSet=${replicaSet}`;
}

/**
 * Makes the server a replica set of one, or one again after its port has changed, and resolves when it takes writes.
 * @throws Error when `signal` says that it ended
 */
export async function waitUntilPrimary(port: number, signal: AbortSignal): Promise<void> {
  // Loaded only here: most machines have no mongod, and a supervisor without a driver is a light one.
  const { default: mongoose } = await import('mongoose');
  const connection = mongoose.createConnection(`mongodb://127.0.0.1:${port}/admin?directConnection=true`, {
    serverSelectionTimeoutMS: 60_000,
  });
  try {
    await connection.asPromise();
    await setMember(connection.db!, `127.0.0.1:${port}`);
    while (!(await connection.db!.command({ hello: 1 }))['isWritablePrimary']) {
      if (signal.aborted) throw new Error('it ended before it was ready');
      await delay(20);
    }
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

async function setMember(db: AdminDatabase, host: string): Promise<void> {
  try {
    const config = (await db.command({ replSetGetConfig: 1 }))['config'] as ReplicaConfig;
    if (config.members[0]?.host === host) return;
    const moved = { ...config, version: config.version + 1, members: [{ _id: 0, host }] };
    // By force, for under its old address the server finds itself in no set, where it takes no ordinary command.
    await db.command({ replSetReconfig: moved, force: true });
  } catch (error) {
    if ((error as { code?: number }).code !== notYetInitialized) throw error;
    await db.command({ replSetInitiate: { _id: replicaSet, members: [{ _id: 0, host }] } });
  }
}
