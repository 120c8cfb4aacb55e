import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePort } from '../../../start/loopback.ts';
import { dist } from '../../../start/paths.ts';
import { roleFlags } from '../../../start/role-flags.ts';
import { waitForHealth } from '../../../start/wait-for-health.ts';
import type { Program, Programs } from '../programs.ts';
import type { Settings } from '../suite.ts';
import { createAccount, type Account } from './accounts.ts';
import { MoneyCheck } from './money-check.ts';
import { createStartSignal, host, startStores, type Stores } from './stores.ts';
import type { Target } from './vendors.ts';

type Role = 'api' | 'worker';

export interface StackOptions {
  readonly settings: Settings;
  /** Written as JSON, which is valid YAML. Its vendors must be running. */
  readonly catalog: object;
  /** How many accounts to create; by default one. */
  readonly accountCount?: number;
  /** Additional Node arguments for one of the roles. */
  readonly nodeArguments?: (role: Role) => readonly string[];
  /** Whether api and worker exchange messages with this process. */
  readonly exchangesMessages?: boolean;
  /** The Node program for all processes; by default the one that runs this program. */
  readonly node?: string;
  /** A folder within that of the programs, if there are several stacks. */
  readonly dirName?: string;
}

/** The whole product on loopback, each part in a separate process, with one api process and one worker. */
export interface Stack extends Stores {
  readonly accounts: readonly Account[];
  /** The api process, with the keys of all accounts. */
  readonly gateway: Target;
  /** Keyed by the process names in CPU reports. */
  readonly pids: Readonly<Record<Role | 'redis' | 'mongo' | 's3', number>>;
  readonly api: Program;
  readonly worker: Program;
  /** Of all accounts. */
  readonly money: MoneyCheck;
  /** Starts another worker. */
  readonly startWorker: () => Program;
  /** Starts another api process, and waits until it listens. */
  readonly startApi: () => Promise<{ readonly program: Program; readonly target: Target }>;
}

/** Starts stores, api and worker, and creates accounts. */
export async function startStack(programs: Programs, options: StackOptions): Promise<Stack> {
  const { settings, accountCount = 1, nodeArguments = () => [], node = process.execPath } = options;
  const dir = join(programs.dir, options.dirName ?? '');
  mkdirSync(dir, { recursive: true });
  const stores = await startStores(programs, { dir, node });
  const catalog = join(dir, 'catalog.yaml');
  writeFileSync(catalog, JSON.stringify(options.catalog));
  const env = {
    ...stores.env,
    CATALOG: catalog,
    HOST: host,
    PUBLIC_URL: '',
    LOG_LEVEL: settings.logLevel,
  };
  const startRole = (name: Role, script: string, port: number): Program =>
    programs.start({
      name,
      file: node,
      args: [...roleFlags, ...profile(name, settings.profileDir), ...nodeArguments(name), dist(script)],
      env: { ...env, PORT: String(port) },
      ...(options.exchangesMessages === true && { kind: 'ipc' }),
    });
  const port = await findFreePort();
  const startWorker = (): Program => startRole('worker', 'workers/main.js', port);
  const startApiOn = async (apiPort: number): Promise<Program> => {
    const program = startRole('api', 'api/main.js', apiPort);
    await waitForHealth(`http://${host}:${apiPort}`, silently, createStartSignal());
    return program;
  };
  const worker = startWorker();
  const api = await startApiOn(port);
  const accounts: Account[] = [];
  for (let i = 0; i < accountCount; i++) accounts.push(await createAccount(env));
  const toTarget = (apiPort: number): Target => ({
    host,
    port: apiPort,
    apiKeys: accounts.map(({ apiKey }) => apiKey),
  });
  return {
    ...stores,
    env,
    accounts,
    gateway: toTarget(port),
    pids: { api: api.pid, worker: worker.pid, ...stores.pids },
    api,
    worker,
    money: new MoneyCheck(
      stores,
      accounts.map(({ id }) => id),
    ),
    startWorker,
    startApi: async () => {
      const otherPort = await findFreePort();
      return { program: await startApiOn(otherPort), target: toTarget(otherPort) };
    },
  };
}

const profile = (role: Role, dir: string | null): string[] =>
  dir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${dir}`, `--cpu-prof-name=${role}.cpuprofile`];

const ignore = (): void => undefined;
const silently = { onListening: ignore, onWorkers: ignore, onWaiting: ignore };
