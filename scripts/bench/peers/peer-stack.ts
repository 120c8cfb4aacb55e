import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Target } from '../bench-stack.ts';
import { createAccount, host, startGateway, startPrintingAddress } from '../gateway-processes.ts';
import { MoneyCheck } from '../money-check.ts';
import type { Programs } from '../programs.ts';
import { startStores } from '../stores.ts';
import { findFreePort } from '../../start/loopback.ts';
import { dist } from '../../start/paths.ts';
import { upstreams, type UpstreamName } from './comparisons.ts';
import type { InstalledPeer } from './install-peer.ts';

/** Where requests of one kind are sent, and the processes that serve them. */
export interface Side {
  readonly target: Target;
  readonly headers: Readonly<Record<string, string>>;
  readonly pids: Readonly<Record<string, number>>;
  /** The model's name there. */
  readonly model: string;
  /** Checks that every response was charged; null where nothing is charged. */
  readonly money: MoneyCheck | null;
}

export interface PeerStack {
  direct(upstream: UpstreamName): Side;
  peer(upstream: UpstreamName): Side;
  gateway(upstream: UpstreamName): Side;
  /** The gateway on the Node that runs this program; null if that is the other one's version. */
  readonly gatewayOnOwnNode: ((upstream: UpstreamName) => Side) | null;
  close(): Promise<void>;
}

export interface PeerStackOptions {
  readonly programs: Programs;
  readonly dir: string;
  readonly peer: InstalledPeer;
  /** Whether to start a second gateway, on the Node that runs this program. */
  readonly comparesNodes: boolean;
  readonly logLevel: string;
}

const startTimeoutMs = 60_000;
const pollMs = 50;
const model = 'cheap';

/** Starts the upstreams, the peer and the gateway. */
export async function startPeerStack(options: PeerStackOptions): Promise<PeerStack> {
  const { programs, peer, comparesNodes } = options;
  const signal = AbortSignal.timeout(startTimeoutMs);
  const names = Object.keys(upstreams) as UpstreamName[];
  const started = await Promise.all(
    names.map(async (name) => {
      const args = [dist('scripts/bench/peers/cheap-upstream.js'), ...upstreams[name].arguments];
      const { pid, url } = await startPrintingAddress(programs, {
        name: `upstream-${name}`,
        file: peer.node,
        args,
        env: process.env,
      });
      return [name, { pid, url }] as const;
    }),
  );
  const addresses = Object.fromEntries(started) as Record<UpstreamName, { pid: number; url: string }>;
  const portOf = (name: UpstreamName): number => Number(new URL(addresses[name].url).port);
  const peerPort = await findFreePort();
  const peerPid = programs.start({
    name: 'peer',
    file: peer.node,
    args: [...peer.args, `--port=${peerPort}`],
    env: process.env,
  }).pid;
  const gateway = await startGatewaySide(options, { node: peer.node, name: 'gateway', addresses, signal });
  const own = comparesNodes
    ? await startGatewaySide(options, { node: process.execPath, name: 'own-node', addresses, signal })
    : null;
  await waitForServer(`http://${host}:${peerPort}/`, signal);
  const upstreamPid = (name: UpstreamName) => ({ upstream: addresses[name].pid });
  return {
    direct: (name) => ({
      target: { host, port: portOf(name), apiKey: 'sk-bench' },
      headers: {},
      pids: upstreamPid(name),
      model,
      money: null,
    }),
    peer: (name) => ({
      target: { host, port: peerPort, apiKey: 'sk-bench' },
      headers: {
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${addresses[name].url}/v1`,
      },
      pids: { ...upstreamPid(name), peer: peerPid },
      model,
      money: null,
    }),
    gateway: (name) => ({ ...gateway, pids: { ...upstreamPid(name), ...gateway.pids }, model: name }),
    gatewayOnOwnNode:
      own === null ? null : (name) => ({ ...own, pids: { ...upstreamPid(name), ...own.pids }, model: name }),
    async close() {
      await gateway.money.close();
      await own?.money.close();
    },
  };
}

interface GatewaySideOptions {
  readonly node: string;
  readonly name: string;
  readonly addresses: Readonly<Record<UpstreamName, { readonly url: string }>>;
  readonly signal: AbortSignal;
}

async function startGatewaySide(
  { programs, dir, logLevel }: PeerStackOptions,
  { node, name, addresses, signal }: GatewaySideOptions,
) {
  const ownDir = join(dir, name);
  mkdirSync(ownDir);
  const stores = await startStores({ programs, dir: ownDir, env: process.env, signal, node });
  const catalog = createCatalog(addresses);
  const running = await startGateway({ programs, dir: ownDir, stores, catalog, logLevel, signal, node });
  const account = await createAccount(running.env);
  return {
    target: { host, port: running.port, apiKey: account.api_key },
    headers: {},
    pids: { ...running.pids, ...stores.pids },
    money: new MoneyCheck(running.env, account.id),
  };
}

function createCatalog(addresses: GatewaySideOptions['addresses']): object {
  const names = Object.keys(upstreams) as UpstreamName[];
  const embedding = (upstream: UpstreamName, dimensions: number) => ({
    id: upstream,
    type: 'embedding',
    context: 8192,
    dimensions: { default: dimensions, adjustable: false },
    pricing: { type: 'tokens', in_cost_per_million: 2 },
    routes: [{ upstream, model }],
  });
  return {
    upstreams: Object.fromEntries(
      names.map((name) => [
        name,
        {
          kind: 'openai',
          baseUrl: `${addresses[name].url}/v1`,
          maxConcurrency: upstreams[name].maxConcurrency,
        },
      ]),
    ),
    models: [
      {
        id: 'chat',
        type: 'chat',
        context: 128_000,
        max_output_tokens: 16_384,
        pricing: { type: 'tokens', prompt: 15, completion: 60 },
        routes: [{ upstream: 'chat', model }],
      },
      embedding('embeddings256', 256),
      embedding('embeddings1536', 1536),
    ],
  };
}

async function waitForServer(url: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await fetch(url, { signal });
      return;
    } catch (error) {
      if (signal.aborted) throw error;
      await delay(pollMs, undefined, { signal });
    }
  }
}
