import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../../start/loopback.ts';
import type { Programs } from '../../harness/programs.ts';
import { chatModel, embeddingModel, openaiUpstream } from '../../harness/stack/catalog.ts';
import type { MoneyCheck } from '../../harness/stack/money-check.ts';
import { startStack } from '../../harness/stack/stack.ts';
import { createStartSignal, host } from '../../harness/stack/stores.ts';
import { startVendors, type Target, type Vendor } from '../../harness/stack/vendors.ts';
import type { Settings } from '../../harness/suite.ts';
import { upstreams, type UpstreamName } from './comparisons.ts';
import type { InstalledPeer } from './install-peer.ts';

/** Where requests of one kind are sent, and the processes that serve them. */
export interface Side {
  readonly target: Target;
  readonly headers?: Readonly<Record<string, string>>;
  readonly pids: Readonly<Record<string, number>>;
  /** The model's name there. */
  readonly model: string;
  /** Checks that every response was charged, where something is charged. */
  readonly money?: MoneyCheck;
}

/** `own` is the gateway on the Node that runs this program, beside the one on the peer's Node. */
export type SideName = 'direct' | 'peer' | 'gateway' | 'own';

/** `own` is missing if both versions of Node are the same. */
export type PeerStack = Readonly<
  Record<Exclude<SideName, 'own'>, (upstream: UpstreamName) => Side> &
    Partial<Record<'own', (upstream: UpstreamName) => Side>>
>;

const pollMs = 50;
const model = 'cheap';

/** Starts the upstreams, the peer and the gateway; if `comparesNodes`, also a gateway on the Node that runs this. */
export async function startPeerStack(
  programs: Programs,
  settings: Settings,
  peer: InstalledPeer,
  comparesNodes: boolean,
): Promise<PeerStack> {
  const { node } = peer;
  const vendors = await startVendors(
    programs,
    'cheap',
    {
      chat: upstreams.chat.arguments,
      embeddings256: upstreams.embeddings256.arguments,
      embeddings1536: upstreams.embeddings1536.arguments,
    },
    node,
  );
  const peerPort = await findFreePort();
  const args = [...peer.args, `--port=${peerPort}`];
  const { pid: peerPid } = programs.start({ name: 'peer', file: node, args, env: process.env });
  const upstreamPid = (name: UpstreamName) => ({ upstream: vendors[name].pid });
  const startSide = async (dirName: string, nodeProgram: string) => {
    const catalog = createCatalog(vendors);
    const stack = await startStack(programs, { settings, catalog, dirName, node: nodeProgram });
    return (name: UpstreamName): Side => ({
      target: stack.gateway,
      pids: { ...upstreamPid(name), ...stack.pids },
      model: name,
      money: stack.money,
    });
  };
  const gateway = await startSide('gateway', node);
  const own = comparesNodes ? await startSide('own-node', process.execPath) : null;
  await waitForServer(`http://${host}:${peerPort}/`);
  return {
    direct: (name) => ({ target: vendors[name].target, pids: upstreamPid(name), model }),
    peer: (name) => ({
      target: { host, port: peerPort, apiKeys: ['sk-bench'] },
      headers: {
        'x-portkey-provider': 'openai',
        'x-portkey-custom-host': `${vendors[name].url}/v1`,
      },
      pids: { ...upstreamPid(name), peer: peerPid },
      model,
    }),
    gateway,
    ...(own !== null && { own }),
  };
}

function createCatalog(vendors: Readonly<Record<UpstreamName, Vendor>>): object {
  const names = Object.keys(upstreams) as UpstreamName[];
  const embedding = (upstream: UpstreamName, dimensions: number) =>
    embeddingModel({ id: upstream, upstream, model, dimensions, isAdjustable: false });
  return {
    upstreams: Object.fromEntries(
      names.map((name) => [name, openaiUpstream(vendors[name], upstreams[name].maxConcurrency)]),
    ),
    models: [
      chatModel({ id: 'chat', upstream: 'chat', model }),
      embedding('embeddings256', 256),
      embedding('embeddings1536', 1536),
    ],
  };
}

async function waitForServer(url: string): Promise<void> {
  const signal = createStartSignal();
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
