import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePort } from '../start/loopback.ts';
import { dist } from '../start/paths.ts';
import { roleFlags } from '../start/role-flags.ts';
import { waitForHealth } from '../start/wait-for-health.ts';
import { replyTokens } from './chat.ts';
import type { Program, Programs } from './programs.ts';
import { vendors, type VendorName } from './scenario.ts';
import { startStores } from './stores.ts';

export interface BenchStackOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logLevel: string;
  /** Where api and worker leave a CPU profile when they end, or null. */
  readonly profileDir: string | null;
}

/** Where requests go, and with which key. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly apiKey: string;
}

/** The whole product on loopback, each part in its own process, with simulated vendors beside it. */
export interface BenchStack {
  readonly gateway: Target;
  readonly vendors: Readonly<Record<VendorName, Target>>;
  readonly accountId: string;
  /** What a process needs to be part of it. */
  readonly env: NodeJS.ProcessEnv;
  /** By the names under which their CPU time is told. */
  readonly pids: Readonly<Record<'api' | 'worker' | 'redis' | 'mongo', number>>;
  readonly vendorPids: Readonly<Record<VendorName, number>>;
}

const host = '127.0.0.1';
const startTimeoutMs = 60_000;

export async function startBenchStack(options: BenchStackOptions): Promise<BenchStack> {
  const { programs, dir } = options;
  const signal = AbortSignal.timeout(startTimeoutMs);
  const readUrl = async (name: VendorName, program: Program): Promise<string> => {
    const { url } = await programs.readAnnouncement(program);
    if (url === undefined) throw new Error(`the vendor ${name} did not say where it listens`);
    return url;
  };
  const startVendor = (name: VendorName): Program =>
    programs.start({
      name: `vendor-${name}`,
      file: process.execPath,
      args: [dist('scripts/vendor-simulator/main.js'), ...vendorArguments(name)],
      env: options.env,
      kind: 'announces',
    });
  const instant = startVendor('instant');
  const busy = startVendor('busy');
  const [stores, instantUrl, busyUrl] = await Promise.all([
    startStores({ programs, dir, env: options.env, signal }),
    readUrl('instant', instant),
    readUrl('busy', busy),
  ]);

  const catalog = join(dir, 'catalog.yaml');
  const vendorUrls = { instant: instantUrl, busy: busyUrl };
  writeFileSync(catalog, writeCatalog(vendorUrls));
  const port = await findFreePort();
  const env = {
    ...stores.env,
    CATALOG: catalog,
    HOST: host,
    PORT: String(port),
    PUBLIC_URL: '',
    LOG_LEVEL: options.logLevel,
  };
  const startRole = (name: 'api' | 'worker', script: string) => {
    const profile =
      options.profileDir === null
        ? []
        : ['--cpu-prof', `--cpu-prof-dir=${options.profileDir}`, `--cpu-prof-name=${name}.cpuprofile`];
    return programs.start({
      name,
      file: process.execPath,
      args: [...roleFlags, ...profile, dist(script)],
      env,
    });
  };
  const api = startRole('api', 'api/main.js');
  const worker = startRole('worker', 'workers/main.js');
  const ignore = (): void => undefined;
  await waitForHealth(
    `http://${host}:${port}`,
    { onListening: ignore, onWorkers: ignore, onWaiting: ignore },
    signal,
  );
  const account = await createAccount(env);

  return {
    gateway: { host, port, apiKey: account.api_key },
    vendors: { instant: toTarget(vendorUrls.instant), busy: toTarget(vendorUrls.busy) },
    accountId: account.id,
    env,
    pids: { api: api.pid, worker: worker.pid, ...stores.pids },
    vendorPids: { instant: instant.pid, busy: busy.pid },
  };
}

function vendorArguments(name: VendorName): string[] {
  const cheap = ['--port', '0', '--json', '--vectors', 'fast', '--reply-words', String(replyTokens)];
  return [...cheap, ...vendors[name].arguments];
}

function toTarget(url: string): Target {
  return { host, port: Number(new URL(url).port), apiKey: 'sk-bench' };
}

/** JSON is YAML. */
function writeCatalog(urls: Readonly<Record<VendorName, string>>): string {
  const names = Object.keys(vendors) as VendorName[];
  const embedding = (upstream: VendorName) => ({
    id: `bench-embedding-${upstream}`,
    type: 'embedding',
    context: 8192,
    dimensions: { default: 1536, adjustable: true },
    pricing: { type: 'tokens', in_cost_per_million: 2 },
    routes: [{ upstream, model: 'text-embedding-sim' }],
  });
  const chat = {
    id: 'bench-chat',
    type: 'chat',
    context: 128_000,
    max_output_tokens: 16_384,
    pricing: { type: 'tokens', prompt: 15, completion: 60 },
    routes: [{ upstream: 'instant', model: 'gpt-sim' }],
  };
  const encoder = {
    id: 'use-lite-en-512',
    type: 'embedding',
    context: 8192,
    dimensions: { default: 512, adjustable: false },
    pricing: { type: 'tokens', in_cost_per_million: 10 },
    routes: [{ upstream: 'builtin', model: 'use-lite-en-512' }],
  };
  const upstreams = names.map((name) => [
    name,
    { kind: 'openai', baseUrl: `${urls[name]}/v1`, maxConcurrency: vendors[name].maxConcurrency },
  ]);
  return JSON.stringify({
    upstreams: { ...Object.fromEntries(upstreams), builtin: { kind: 'builtin' } },
    models: [chat, ...names.map(embedding), encoder],
  });
}

/** With the highest limits that there are: what is measured is the way of a request, not a refusal. */
async function createAccount(env: NodeJS.ProcessEnv): Promise<{ id: string; api_key: string }> {
  const args = ['account', 'create', '--balance', '1000000', '--rpm', '1000000', '--json'];
  const script = dist('scripts/admin/main.js');
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], { env });
  return JSON.parse(stdout) as { id: string; api_key: string };
}
