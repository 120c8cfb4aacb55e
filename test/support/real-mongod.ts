import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext, Implementation, TestFn } from 'ava';
import mongoose from 'mongoose';
import { addCredentials, embeddedUser } from '../../scripts/embedded/credentials.ts';
import { mongodLaunch, mongodOptions, type MongodOptions } from '../../scripts/embedded/mongod.ts';
import { findStablePort } from './stable-port.ts';
import { waitFor } from './wait-for.ts';

/** Set by the test runner if a mongod can run on this machine. */
const variable = 'TEST_MONGOD_BIN';

type Register = (title: string, implementation: Implementation<[]>) => void;

/**
 * @returns a function that registers tests that need a real mongod; without one they are skipped, with the reason in
 * the title
 */
export function requireMongod(test: TestFn | TestFn['serial']): Register {
  if (process.env[variable]) return (title, implementation) => test(title, implementation);
  return (title, implementation) =>
    test.skip(`${title} (needs a mongod: ${variable} is not set)`, implementation);
}

/** One node, three nodes, or two and an arbiter: with an arbiter the default write concern is `w: 1`. */
export type RealMongoShape = 'one' | 'three' | 'arbiter';

/** A replica set of real servers on loopback. Members are numbered from 0; an arbiter is the last. */
export interface RealMongo {
  /** Lists all members that hold data, with user and password. A database name may be inserted before the `?`. */
  readonly url: string;
  readonly ports: readonly number[];
  /** Waits until a running member is primary. @returns its number */
  findPrimary(): Promise<number>;
  /** Kills a member, as in a crash. */
  kill(member: number): Promise<void>;
  /** Freezes a member with its connections open, like a hanging machine or disk. */
  stop(member: number): void;
  cont(member: number): void;
  /** Restarts a killed member, with its data. */
  restart(member: number): Promise<void>;
  /** Makes the primary step down, as in maintenance. Resolves once another member is primary. */
  stepDown(): Promise<void>;
  /** Runs a command on one member only, as its administrator. */
  command(member: number, command: Record<string, unknown>): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

const password = 'test-mongo-password';
const startBoundMs = 30_000;
/** Settings that save memory and disk space, without diagnostics. */
const frugal = [
  '--wiredTigerCacheSizeGB=0.25',
  '--oplogSize=64',
  '--setParameter=diagnosticDataCollectionEnabled=false',
];
/** A lost primary is replaced within about three seconds. Lower values would cause elections on a busy machine. */
const settings = {
  electionTimeoutMillis: 2_000,
  heartbeatIntervalMillis: 500,
  heartbeatTimeoutSecs: 2,
  catchUpTimeoutMillis: 1_000,
};

class Member {
  readonly options: MongodOptions;
  #child: ChildProcess | null = null;
  #exited: Promise<unknown> = Promise.resolve();

  constructor(options: MongodOptions) {
    this.options = options;
  }

  async start(): Promise<void> {
    const { file, args } = mongodLaunch(this.options);
    const child = spawn(file, [...args, ...frugal], { stdio: 'ignore' });
    this.#child = child;
    this.#exited = once(child, 'exit');
    guardAgainstOurDeath(child, this.options.dir);
    const bound = AbortSignal.timeout(startBoundMs);
    while (!(await accepts(this.options.port))) {
      if (child.exitCode !== null) throw new Error(`mongod exited with code ${child.exitCode}`);
      bound.throwIfAborted();
      await delay(20);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.#exited;
  }
}

/**
 * Starts a shell that kills the server and removes its data when this process ends or is killed, because the
 * shell's input ends then.
 */
function guardAgainstOurDeath(child: ChildProcess, dir: string): void {
  const script = 'read -r _; kill -9 "$1"; rm -rf "$2"';
  const guard = spawn('sh', ['-c', script, 'guard', String(child.pid), dir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // In another process group, so that Ctrl-C ends only this process and the shell can clean up.
    detached: true,
  });
  child.once('exit', () => guard.kill('SIGKILL'));
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.end());
    socket.on('error', () => resolve(false));
    socket.on('end', () => resolve(true));
    socket.on('finish', () => resolve(true));
  });
}

export async function startRealMongo(shape: RealMongoShape): Promise<RealMongo> {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  const path = process.env[variable];
  if (!path) throw new Error(`${variable} is not set`);
  // The members of a set authenticate to each other with a shared key.
  const common = mongodOptions({ path, port: 0, password, dataDir: dir });
  const members: Member[] = [];
  const closeAll = async (): Promise<void> => {
    await Promise.all(members.map((member) => member.kill()));
    await rm(dir, { recursive: true, force: true });
  };
  try {
    for (let i = 0; i < (shape === 'one' ? 1 : 3); i += 1) {
      const [dataDir, keyFile] = [join(dir, `member-${i}`), join(dir, `member-${i}.key`)];
      members.push(new Member({ ...common, port: await findStablePort(), dir: dataDir, keyFile }));
    }
    await Promise.all(members.map((member) => member.start()));
    await initiate(members, shape);
  } catch (error) {
    await closeAll();
    throw error;
  }
  const addressOf = (member: Member): string => `127.0.0.1:${member.options.port}`;
  const data = shape === 'arbiter' ? members.slice(0, 2) : members;
  const url = `mongodb://${data.map(addressOf).join(',')}/?replicaSet=rs0&authSource=admin`;
  const command: RealMongo['command'] = (member, text) => runOn(members[member]!, text);
  const findPrimary = (): Promise<number> => findPrimaryOf(members);
  return {
    url: addCredentials(url, password),
    ports: members.map((member) => member.options.port),
    findPrimary,
    kill: (member) => members[member]!.kill(),
    stop: (member) => members[member]!.signal('SIGSTOP'),
    cont: (member) => members[member]!.signal('SIGCONT'),
    restart: (member) => members[member]!.start(),
    async stepDown() {
      const old = await findPrimary();
      await command(old, { replSetStepDown: 10, secondaryCatchUpPeriodSecs: 5 });
      await findPrimary();
    },
    command,
    close: closeAll,
  };
}

/** The URL with a database for one test. */
export const nameDatabase = (url: string, name: string = randomUUID()): string =>
  url.replace('/?', `/${name}?`);

/** A replica set that is closed when the test ends. */
export async function useRealMongo(t: ExecutionContext, shape: RealMongoShape): Promise<RealMongo> {
  const mongo = await startRealMongo(shape);
  t.teardown(() => mongo.close());
  return mongo;
}

async function findPrimaryOf(members: readonly Member[]): Promise<number> {
  const isPrimary = async (member: Member): Promise<boolean> => {
    try {
      return (await runOn(member, { hello: 1 }))['isWritablePrimary'] === true;
    } catch {
      // A member that is down or frozen is not a primary.
      return false;
    }
  };
  const [first] = await waitFor('a primary', async () => {
    const states = await Promise.all(members.map(isPrimary));
    const found = states.indexOf(true);
    return found >= 0 && [found];
  });
  return first;
}

/** Runs a command as the server's internal user, which exists before any other and has all permissions. */
async function runOn(member: Member, command: Record<string, unknown>): Promise<Record<string, unknown>> {
  const { port, key } = member.options;
  const url = `mongodb://127.0.0.1:${port}/?directConnection=true`;
  const client = new mongoose.mongo.MongoClient(url, {
    serverSelectionTimeoutMS: 1_000,
    connectTimeoutMS: 1_000,
    socketTimeoutMS: 10_000,
    auth: { username: '__system', password: key },
    authSource: 'local',
  });
  try {
    return await client.db('admin').command(command);
  } finally {
    await client.close();
  }
}

const nodeNotFound = 74;

async function initiate(members: readonly Member[], shape: RealMongoShape): Promise<void> {
  const config = {
    _id: 'rs0',
    members: members.map(({ options }, i) => ({
      _id: i,
      host: `127.0.0.1:${options.port}`,
      ...(i === 2 && shape === 'arbiter' ? { arbiterOnly: true } : {}),
    })),
    settings,
  };
  await waitFor('the members to find one another', async () => {
    try {
      return await runOn(members[0]!, { replSetInitiate: config });
    } catch (error) {
      // On a busy machine, members may not reach each other in time.
      if ((error as { code?: number }).code === nodeNotFound) return null;
      throw error;
    }
  });
  const first = await findPrimaryOf(members);
  await runOn(members[first]!, {
    createUser: embeddedUser,
    pwd: password,
    roles: ['root'],
    mechanisms: ['SCRAM-SHA-256'],
    // Waits for all members, because a test may kill any of them immediately.
    writeConcern: { w: shape === 'arbiter' ? 2 : members.length, wtimeout: startBoundMs },
  });
}
