import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePort } from '../start/loopback.ts';
import { dist } from '../start/paths.ts';
import { roleFlags } from '../start/role-flags.ts';
import { waitForHealth } from '../start/wait-for-health.ts';
import type { Program, ProgramOptions, Programs } from './programs.ts';
import type { Stores } from './stores.ts';

export const host = '127.0.0.1';

export interface GatewayOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly stores: Stores;
  /** Written as JSON, which is valid YAML. */
  readonly catalog: object;
  readonly logLevel: string;
  /** Additional Node arguments for one of the roles. */
  readonly nodeArguments?: (role: 'api' | 'worker') => readonly string[];
  /** Whether api and worker exchange messages with this process. */
  readonly exchangesMessages?: boolean;
  readonly signal: AbortSignal;
  /** The Node program for both roles; by default the one that runs this program. */
  readonly node?: string;
}

export interface GatewayProcesses {
  readonly port: number;
  /** Environment for a process that is part of the stack. */
  readonly env: NodeJS.ProcessEnv;
  readonly pids: Readonly<Record<'api' | 'worker', number>>;
  readonly api: Program;
  readonly worker: Program;
  /** Starts another worker. */
  readonly startWorker: () => Program;
  /** Starts another api process, and waits until it listens. */
  readonly startApi: () => Promise<{ readonly program: Program; readonly port: number }>;
}

/** Starts one api and one worker on running stores. */
export async function startGateway(options: GatewayOptions): Promise<GatewayProcesses> {
  const { programs, dir, nodeArguments = () => [], node = process.execPath, exchangesMessages } = options;
  const catalog = join(dir, 'catalog.yaml');
  writeFileSync(catalog, JSON.stringify(options.catalog));
  const port = await findFreePort();
  const env = {
    ...options.stores.env,
    CATALOG: catalog,
    HOST: host,
    PORT: String(port),
    PUBLIC_URL: '',
    LOG_LEVEL: options.logLevel,
  };
  const startRole = (name: 'api' | 'worker', script: string, roleEnv: NodeJS.ProcessEnv = env): Program =>
    programs.start({
      name,
      file: node,
      args: [...roleFlags, ...nodeArguments(name), dist(script)],
      env: roleEnv,
      ...(exchangesMessages === true && { kind: 'ipc' as const }),
    });
  const api = startRole('api', 'api/main.js');
  const startWorker = (): Program => startRole('worker', 'workers/main.js');
  const worker = startWorker();
  const startApi = async () => {
    const otherPort = await findFreePort();
    const program = startRole('api', 'api/main.js', { ...env, PORT: String(otherPort) });
    await waitForApi(otherPort, options.signal);
    return { program, port: otherPort };
  };
  await waitForApi(port, options.signal);
  return { port, env, pids: { api: api.pid, worker: worker.pid }, api, worker, startWorker, startApi };
}

const ignore = (): void => undefined;

const waitForApi = (port: number, signal: AbortSignal): Promise<void> =>
  waitForHealth(
    `http://${host}:${port}`,
    { onListening: ignore, onWorkers: ignore, onWaiting: ignore },
    signal,
  );

/** Starts a simulated vendor, and waits until it listens. */
export const startVendor = (
  programs: Programs,
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Listening> =>
  startPrintingAddress(programs, {
    name: `vendor-${name}`,
    file: process.execPath,
    args: [dist('scripts/vendor-simulator/main.js'), '--port', '0', '--json', ...args],
    env,
  });

export interface Listening {
  readonly pid: number;
  readonly url: string;
}

/** Starts a server that prints its address once it listens. */
export async function startPrintingAddress(programs: Programs, options: ProgramOptions): Promise<Listening> {
  const program = programs.start({ ...options, kind: 'prints-address' });
  const { url } = await programs.readStartupLine(program);
  if (url === undefined) throw new Error(`${options.name} did not report its address`);
  return { pid: program.pid, url };
}

/** Creates an account with the highest possible limits, so that requests are not rejected. */
export async function createAccount(
  env: NodeJS.ProcessEnv,
  balance = '1000000',
): Promise<{ id: string; api_key: string }> {
  const args = ['account', 'create', '--balance', balance, '--rpm', '1000000', '--json'];
  const script = dist('scripts/admin/main.js');
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env });
  return JSON.parse(stdout) as { id: string; api_key: string };
}

/** Lets an account have this many unfinished jobs. */
export async function allowJobs(env: NodeJS.ProcessEnv, accountId: string, jobs: number): Promise<void> {
  const args = ['account', 'limit', accountId, '--max-queued-jobs', String(jobs)];
  await promisify(execFile)(process.execPath, [dist('scripts/admin/main.js'), ...args], { env });
}
