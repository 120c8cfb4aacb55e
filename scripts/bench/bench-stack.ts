import { replyTokens } from './chat.ts';
import { createAccount, host, startGateway, startVendor } from './gateway-processes.ts';
import type { Program, Programs } from './programs.ts';
import { vendors, type VendorName } from './scenario.ts';
import { startStores } from './stores.ts';

export interface BenchStackOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly logLevel: string;
  /** Where api and worker write a CPU profile when they exit, or null. */
  readonly profileDir: string | null;
}

/** The address that requests are sent to, and their API key. */
export interface Target {
  readonly host: string;
  readonly port: number;
  readonly apiKey: string;
}

/** The whole product on loopback, each part in a separate process, with simulated vendors. */
export interface BenchStack {
  readonly gateway: Target;
  readonly vendors: Readonly<Record<VendorName, Target>>;
  readonly accountId: string;
  /** Environment for a process that is part of the stack. */
  readonly env: NodeJS.ProcessEnv;
  /** Keyed by the process names in CPU reports. */
  readonly pids: Readonly<Record<'api' | 'worker' | 'redis' | 'mongo', number>>;
  readonly vendorPids: Readonly<Record<VendorName, number>>;
  readonly worker: Program;
  /** Starts another worker. */
  readonly startWorker: () => Program;
}

const startTimeoutMs = 60_000;

export async function startBenchStack(options: BenchStackOptions): Promise<BenchStack> {
  const { programs, dir, profileDir } = options;
  const signal = AbortSignal.timeout(startTimeoutMs);
  const start = (name: VendorName) => startVendor(programs, name, vendorArguments(name), options.env);
  const [stores, instant, busy] = await Promise.all([
    startStores({ programs, dir, env: options.env, signal }),
    start('instant'),
    start('busy'),
  ]);
  const { port, env, pids, worker, startWorker } = await startGateway({
    programs,
    dir,
    stores,
    catalog: createCatalog({ instant: instant.url, busy: busy.url }),
    logLevel: options.logLevel,
    nodeArguments: (role) =>
      profileDir === null
        ? []
        : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`, `--cpu-prof-name=${role}.cpuprofile`],
    signal,
  });
  const account = await createAccount(env);
  return {
    gateway: { host, port, apiKey: account.api_key },
    vendors: { instant: toTarget(instant.url), busy: toTarget(busy.url) },
    accountId: account.id,
    env,
    pids: { ...pids, ...stores.pids },
    vendorPids: { instant: instant.pid, busy: busy.pid },
    worker,
    startWorker,
  };
}

function vendorArguments(name: VendorName): string[] {
  const cheap = ['--vectors', 'fast', '--reply-words', String(replyTokens)];
  return [...cheap, ...vendors[name].arguments];
}

function toTarget(url: string): Target {
  return { host, port: Number(new URL(url).port), apiKey: 'sk-bench' };
}

function createCatalog(urls: Readonly<Record<VendorName, string>>): object {
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
  return {
    upstreams: { ...Object.fromEntries(upstreams), builtin: { kind: 'builtin' } },
    models: [chat, ...names.map(embedding), encoder],
  };
}
