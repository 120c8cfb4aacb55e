import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { WorkerRegistryStore } from '../../../../shared/work/queue/worker-registry-store.ts';
import { dist } from '../../../start/paths.ts';
import type { LoadPlan } from '../../harness/load/load-plan.ts';
import { runChargedLoad } from '../../harness/load/run-load.ts';
import type { Program } from '../../harness/programs.ts';
import { chatModel, openaiUpstream } from '../../harness/stack/catalog.ts';
import { startStack, type Stack } from '../../harness/stack/stack.ts';
import { createStartSignal } from '../../harness/stack/stores.ts';
import { startVendors } from '../../harness/stack/vendors.ts';
import type { CapacityRun } from './capacity-scenario.ts';
import type { Holding } from './probe.ts';

/** A simulated vendor's streams. */
export interface StreamPace {
  readonly tokens: number;
  /** Time before each token; 0 for as fast as the reader takes them. */
  readonly tokenMs: number;
}

/** The model of a vendor that every stack has, whose streams take no time. */
export const instant = 'instant';
export const instantPace: StreamPace = { tokens: 50, tokenMs: 0 };

export interface CapacityStack extends Stack {
  /** Asks the first api process and the first worker what they hold after a garbage collection. */
  readonly probe: () => Promise<Readonly<Record<'api' | 'worker', Holding>>>;
  /** Runs streams until code is compiled, and heaps and pools have grown. */
  readonly warmUp: () => Promise<void>;
  /** Starts another worker, and waits until it takes chats. */
  readonly addWorker: () => Promise<Program>;
}

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
  { programs, settings }: CapacityRun,
  paces: Readonly<Record<string, StreamPace>> = {},
): Promise<CapacityStack> {
  const argumentsOf = Object.entries({ [instant]: instantPace, ...paces }).map(
    ([name, { tokens, tokenMs }]) =>
      [name, ['--tokens', String(tokens), '--per-token-ms', String(tokenMs)]] as const,
  );
  const vendors = Object.entries(await startVendors(programs, 'cheap', Object.fromEntries(argumentsOf)));
  const limits = { context: 400_000, maxOutputTokens: 200_000 };
  const stack = await startStack(programs, {
    settings,
    catalog: {
      upstreams: Object.fromEntries(
        vendors.map(([name, vendor]) => [name, openaiUpstream(vendor, maxConcurrency)]),
      ),
      models: vendors.map(([name]) => chatModel({ id: name, upstream: name, model: 'cheap', ...limits })),
    },
    accountCount,
    nodeArguments: () => ['--expose-gc', '--import', dist('scripts/bench/suites/capacity/probe.js')],
    exchangesMessages: true,
  });
  const registry = new WorkerRegistryStore(stack.redis);
  return {
    ...stack,
    probe: async () => {
      const [api, worker] = await Promise.all([probe(stack.api), probe(stack.worker)]);
      return { api, worker };
    },
    warmUp: async () => {
      await runChargedLoad(programs, stack.money, {
        ...stack.gateway,
        ...streamPlan(instant, instantPace),
        callers: warmUpCallers,
        span: { kind: 'work', requests: warmUpRequests },
        pids: {},
      });
    },
    addWorker: async () => {
      const signal = createStartSignal();
      const { size } = await registry.findAlive('chat');
      const program = stack.startWorker();
      while ((await registry.findAlive('chat')).size <= size) await delay(pollMs, undefined, { signal });
      return program;
    },
  };
}

async function probe({ child }: Program): Promise<Holding> {
  const reply = once(child, 'message') as Promise<[Holding]>;
  child.send('probe');
  return (await reply)[0];
}

type RequestPlan = Pick<LoadPlan, 'path' | 'body' | 'expects'>;

const planRequest = (model: string, stream: true | undefined, expects: LoadPlan['expects']): RequestPlan => ({
  path: '/v1/chat/completions',
  body: JSON.stringify({
    model,
    messages: [{ role: 'user', content: 'How do I keep bread fresh for more than two days?' }],
    stream,
  }),
  expects,
});

export const chatPlan = (model: string, { tokens }: StreamPace): RequestPlan =>
  planRequest(model, undefined, { kind: 'chat', tokens });

export const streamPlan = (model: string, { tokens }: StreamPace): RequestPlan =>
  planRequest(model, true, { kind: 'stream', tokens });
