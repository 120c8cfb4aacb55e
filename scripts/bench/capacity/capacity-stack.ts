import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { loadConfig } from '../../../shared/platform/config/config.ts';
import { WorkerRegistryStore } from '../../../shared/work/queue/worker-registry-store.ts';
import type { Target } from '../bench-stack.ts';
import { createAccount, host, startGateway, startPrintingAddress } from '../gateway-processes.ts';
import { MoneyCheck } from '../money-check.ts';
import type { Program } from '../programs.ts';
import { runLoad } from '../run-load.ts';
import { startStores } from '../stores.ts';
import { dist } from '../../start/paths.ts';
import type { Holding } from './probe.ts';
import type { CapacityRun } from './report.ts';

/** A simulated vendor's streams. */
export interface StreamPace {
  readonly tokens: number;
  /** Time before each token; 0 for as fast as the reader takes them. */
  readonly tokenMs: number;
}

/** The model of a vendor that every stack has, whose streams take no time. */
export const instant = 'instant';
export const instantPace: StreamPace = { tokens: 50, tokenMs: 0 };

export interface CapacityTarget extends Target {
  /** Of several accounts. */
  readonly apiKeys: readonly string[];
}

export interface CapacityStack {
  /** The first api process. */
  readonly gateway: CapacityTarget;
  /** Of the first api process, the first worker and the stores. */
  readonly pids: Readonly<Record<'api' | 'worker' | 'redis' | 'mongo', number>>;
  readonly money: MoneyCheck;
  /** Asks the first api process and the first worker what they hold after a garbage collection. */
  readonly probe: () => Promise<Readonly<Record<'api' | 'worker', Holding>>>;
  /** Runs streams until code is compiled, and heaps and pools have grown. */
  readonly warmUp: () => Promise<void>;
  /** The number of all keys in Redis. */
  readonly countRedisKeys: () => Promise<number>;
  /** Starts another worker, and waits until it takes chats. */
  readonly startWorker: () => Promise<Program>;
  /** Starts another api process, and waits until it listens. */
  readonly startApi: () => Promise<{ readonly program: Program; readonly target: CapacityTarget }>;
  readonly close: () => Promise<void>;
}

const startTimeoutMs = 60_000;
/** An account may use only a part of a worker's slots. */
const accountCount = 8;
const warmUpRequests = 3_000;
const warmUpCallers = 64;
const pollMs = 50;
const maxConcurrency = 16_384;

/**
 * Starts the product on loopback, with one api process and one worker.
 * @param paces further vendors, by the model that they serve; each runs in a separate process
 */
export async function startCapacityStack(
  { programs, dir, options: { logLevel } }: CapacityRun,
  paces: Readonly<Record<string, StreamPace>> = {},
): Promise<CapacityStack> {
  const signal = AbortSignal.timeout(startTimeoutMs);
  const env = process.env;
  const urls = await Promise.all(
    Object.entries({ [instant]: instantPace, ...paces }).map(async ([name, { tokens, tokenMs }]) => {
      const pace = ['--tokens', String(tokens), '--per-token-ms', String(tokenMs)];
      const args = [dist('scripts/bench/peers/cheap-upstream.js'), ...pace];
      const program = { name: `upstream-${name}`, file: process.execPath, args, env };
      return [name, (await startPrintingAddress(programs, program)).url] as const;
    }),
  );
  const stores = await startStores({ programs, dir, env, signal });
  const gateway = await startGateway({
    programs,
    dir,
    stores,
    catalog: createCatalog(urls),
    logLevel,
    nodeArguments: () => ['--expose-gc', '--import', dist('scripts/bench/capacity/probe.js')],
    exchangesMessages: true,
    signal,
  });
  const accounts = [];
  for (let i = 0; i < accountCount; i++) accounts.push(await createAccount(gateway.env));
  const apiKeys = accounts.map((account) => account.api_key);
  const toTarget = (port: number): CapacityTarget => ({ host, port, apiKey: apiKeys[0]!, apiKeys });
  const money = new MoneyCheck(gateway.env, ...accounts.map(({ id }) => id));
  const redis = new Redis(loadConfig(gateway.env).redisUrl);
  const registry = new WorkerRegistryStore(redis);
  return {
    gateway: toTarget(gateway.port),
    pids: { ...gateway.pids, ...stores.pids },
    money,
    probe: async () => {
      const [api, worker] = await Promise.all([probe(gateway.api), probe(gateway.worker)]);
      return { api, worker };
    },
    warmUp: async () => {
      const startedAt = new Date();
      const load = await runLoad(programs, {
        ...toTarget(gateway.port),
        ...chatPlan(instant, true),
        callers: warmUpCallers,
        span: { kind: 'work', requests: warmUpRequests },
        expects: { kind: 'stream', tokens: instantPace.tokens },
        pids: {},
      });
      await money.check(startedAt, load.allAnswers);
    },
    countRedisKeys: () => redis.dbsize(),
    startWorker: async () => {
      const { size } = await registry.findAlive('chat');
      const program = gateway.startWorker();
      while ((await registry.findAlive('chat')).size <= size) await delay(pollMs, undefined, { signal });
      return program;
    },
    startApi: async () => {
      const { program, port } = await gateway.startApi();
      return { program, target: toTarget(port) };
    },
    close: async () => {
      redis.disconnect();
      await money.close();
    },
  };
}

async function probe({ child }: Program): Promise<Holding> {
  const reply = once(child, 'message') as Promise<[Holding]>;
  child.send('probe');
  return (await reply)[0];
}

function createCatalog(urls: readonly (readonly [string, string])[]): object {
  const upstream = (url: string) => ({ kind: 'openai', baseUrl: `${url}/v1`, maxConcurrency });
  const model = (name: string) => ({
    id: name,
    type: 'chat',
    context: 400_000,
    max_output_tokens: 200_000,
    pricing: { type: 'tokens', prompt: 15, completion: 60 },
    routes: [{ upstream: name, model: 'cheap' }],
  });
  return {
    upstreams: Object.fromEntries(urls.map(([name, url]) => [name, upstream(url)])),
    models: urls.map(([name]) => model(name)),
  };
}

/** The plan's fields that are the same in all scenarios. */
export const chatPlan = (model: string, isStreamed: boolean) => ({
  path: '/v1/chat/completions',
  body: JSON.stringify({
    model,
    messages: [{ role: 'user', content: 'How do I keep bread fresh for more than two days?' }],
    ...(isStreamed && { stream: true }),
  }),
  background: 0,
});
